package com.example.asktell;

import com.dpareto.v1.FrontServiceGrpc;
import com.dpareto.v1.GetFrontRequest;
import com.dpareto.v1.GetFrontResponse;
import com.dpareto.v1.StudyServiceGrpc;
import com.dpareto.v1.StudyServiceGrpc.StudyServiceBlockingStub;
import com.dpareto.v1.SuggestTrialsRequest;
import com.dpareto.v1.SuggestTrialsResponse;
import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.rpc.BadRequest;
import com.google.rpc.RetryInfo;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.AbstractStub;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/** A connection to a server, with calls that survive its restart. Safe for use by many threads. */
final class Server implements AutoCloseable {
  /** Time limit of one attempt of a call. */
  private static final Duration ATTEMPT = Duration.ofSeconds(15);

  /** Time limit of one attempt of a call that may fit a model. */
  private static final Duration MODEL = Duration.ofMinutes(2);

  private static final Duration FIRST_PAUSE = Duration.ofMillis(50);
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(1);

  private final ManagedChannel channel;

  /**
   * @param address for example 127.0.0.1:8321
   */
  Server(String address) {
    channel = Grpc.newChannelBuilder(address, InsecureChannelCredentials.create()).build();
  }

  /** Makes a call of the study service that fits no model (see {@link #repeat}). */
  <T> T studies(Function<StudyServiceBlockingStub, T> call) throws InterruptedException {
    return repeat(() -> call.apply(attempt()));
  }

  /** Asks for trials (see {@link #repeat}). */
  SuggestTrialsResponse suggest(SuggestTrialsRequest request) throws InterruptedException {
    var stub = StudyServiceGrpc.newBlockingStub(channel);
    return repeat(() -> within(MODEL, stub).suggestTrials(request));
  }

  /** Reads a front (see {@link #repeat}). */
  GetFrontResponse front(GetFrontRequest request) throws InterruptedException {
    var stub = FrontServiceGrpc.newBlockingStub(channel);
    return repeat(() -> within(MODEL, stub).getFront(request));
  }

  /** Returns a stub of the study service for one attempt of a call. */
  StudyServiceBlockingStub attempt() {
    return within(ATTEMPT, StudyServiceGrpc.newBlockingStub(channel));
  }

  /** Returns a stub whose calls end a limited time from now. */
  private static <S extends AbstractStub<S>> S within(Duration limit, S stub) {
    return stub.withDeadlineAfter(limit.toMillis(), TimeUnit.MILLISECONDS);
  }

  @Override
  public void close() {
    channel.shutdownNow();
  }

  /**
   * Makes a call until there is an answer or an error that lasts. All attempts are the same
   * request: where the server could take the second for another one, it has an id.
   */
  private <T> T repeat(Supplier<T> attempt) throws InterruptedException {
    for (Duration pause = FIRST_PAUSE; ; pause = min(pause.multipliedBy(2), LONGEST_PAUSE)) {
      try {
        return attempt.get();
      } catch (StatusRuntimeException e) {
        if (!isTransient(e)) {
          throw described(e);
        }
        System.err.println("again after: " + e.getMessage());
        // Half of the pause is random, so that workers do not return all at once.
        double factor = ThreadLocalRandom.current().nextDouble(0.5, 1);
        Thread.sleep(retryDelay(e).toMillis() + (long) (factor * pause.toMillis()));
        channel.resetConnectBackoff(); // otherwise a channel waits for up to two minutes
      }
    }
  }

  /**
   * Returns whether another attempt can succeed: the server cannot be reached, is stopping, lost a
   * race, did not answer in time, or says when to come again.
   */
  private static boolean isTransient(StatusRuntimeException e) {
    return switch (e.getStatus().getCode()) {
      case UNAVAILABLE, ABORTED, CANCELLED, DEADLINE_EXCEEDED -> true;
      case RESOURCE_EXHAUSTED -> !retryDelay(e).isZero();
      default -> false;
    };
  }

  private static Duration retryDelay(StatusRuntimeException e) {
    return detail(e, RetryInfo.class)
        .map(RetryInfo::getRetryDelay)
        .map(delay -> Duration.ofSeconds(delay.getSeconds(), delay.getNanos()))
        .orElse(Duration.ZERO);
  }

  /** Returns an error that names every field that is wrong, where the server does. */
  private static StatusRuntimeException described(StatusRuntimeException e) {
    return detail(e, BadRequest.class)
        .map(
            bad ->
                bad.getFieldViolationsList().stream()
                    .map(field -> field.getField() + ": " + field.getDescription())
                    .collect(Collectors.joining("; ")))
        .map(fields -> e.getStatus().withDescription(fields).withCause(e).asRuntimeException())
        .orElse(e);
  }

  private static <D extends Message> Optional<D> detail(
      StatusRuntimeException e, Class<D> type) {
    try {
      for (Any detail : StatusProto.fromThrowable(e).getDetailsList()) {
        if (detail.is(type)) {
          return Optional.of(detail.unpack(type));
        }
      }
    } catch (InvalidProtocolBufferException unreadable) {
      return Optional.empty(); // the error is what matters
    }
    return Optional.empty();
  }

  private static Duration min(Duration a, Duration b) {
    return a.compareTo(b) < 0 ? a : b;
  }
}
