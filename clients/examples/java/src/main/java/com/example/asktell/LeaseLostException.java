package com.example.asktell;

/** Another worker has the trial, or it has ended: the run is to be dropped. */
final class LeaseLostException extends Exception {
  LeaseLostException(String reason, Throwable cause) {
    super(reason, cause);
  }
}
