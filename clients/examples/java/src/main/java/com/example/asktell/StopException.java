package com.example.asktell;

/** The server asks to complete the trial with what was measured so far. */
final class StopException extends Exception {
  StopException(String reason) {
    super(reason);
  }
}
