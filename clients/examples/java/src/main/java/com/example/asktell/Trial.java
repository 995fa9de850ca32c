package com.example.asktell;

import com.dpareto.v1.AddMeasurementRequest;
import com.dpareto.v1.CompleteTrialRequest;
import com.dpareto.v1.Failure;
import com.dpareto.v1.Measurement;
import com.dpareto.v1.MetricValue;
import com.dpareto.v1.RenewLeasesRequest;
import com.dpareto.v1.StudyServiceGrpc.StudyServiceBlockingStub;
import com.dpareto.v1.UseLastMeasurement;
import com.dpareto.v1.Value;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/** A configuration to run, which is the worker's for as long as its lease holds. */
final class Trial {
  private static final long DEFAULT_LEASE_MILLIS = 60_000;
  private static final int LONGEST_REASON = 2000;

  private final Server server;
  private final String study;
  private final com.dpareto.v1.Trial message;
  private volatile boolean measured;

  Trial(Server server, String study, com.dpareto.v1.Trial message) {
    this.server = server;
    this.study = study;
    this.message = message;
  }

  String name() {
    return message.getName();
  }

  /** Returns how many independent runs to make. */
  int replicates() {
    return message.getReplicates();
  }

  /** Returns a value of a double or discrete parameter. */
  double doubleValue(String id) {
    return value(id, Value.KindCase.DOUBLE_VALUE).getDoubleValue();
  }

  /** Returns a value of an integer parameter. */
  long longValue(String id) {
    return value(id, Value.KindCase.INT_VALUE).getIntValue();
  }

  private Value value(String id, Value.KindCase kind) {
    Value value = message.getParametersOrDefault(id, Value.getDefaultInstance());
    if (value.getKindCase() != kind) {
      throw new IllegalArgumentException(name() + " has no " + kind + " " + id);
    }
    return value;
  }

  /**
   * Reports what was measured on the way, which renews the lease.
   *
   * @param metrics values by metric id, one for every independent run
   * @throws StopException when the trial should be completed with what was reported
   */
  void report(long step, Map<String, List<Double>> metrics)
      throws StopException, LeaseLostException, InterruptedException {
    var request =
        AddMeasurementRequest.newBuilder()
            .setName(name())
            .setLeaseToken(token())
            .setMeasurement(measurement(step, metrics))
            .build();
    var answer = call(stub -> stub.addMeasurement(request));
    measured = true;
    if (answer.getShouldStop()) {
      throw new StopException(answer.getStopReason());
    }
  }

  /**
   * Completes the trial with its final metrics. They are taken after the end of the lease, too,
   * unless another worker was faster.
   */
  void complete(long step, Map<String, List<Double>> metrics)
      throws LeaseLostException, InterruptedException {
    end(CompleteTrialRequest.newBuilder().setMeasurement(measurement(step, metrics)));
  }

  /** Completes the trial with the measurement that was reported last. */
  void completeWithLast() throws LeaseLostException, InterruptedException {
    end(
        CompleteTrialRequest.newBuilder()
            .setUseLastMeasurement(UseLastMeasurement.getDefaultInstance()));
  }

  /** Ends the attempt: the machinery failed, which says nothing about the configuration. */
  void fail(String reason) throws LeaseLostException, InterruptedException {
    var clipped = reason.substring(0, Math.min(reason.length(), LONGEST_REASON));
    end(
        CompleteTrialRequest.newBuilder()
            .setFailure(Failure.newBuilder().setReason(clipped).setRetryable(true)));
  }

  private void end(CompleteTrialRequest.Builder outcome)
      throws LeaseLostException, InterruptedException {
    var request = outcome.setName(name()).setLeaseToken(token()).build();
    call(stub -> stub.completeTrial(request));
  }

  /** Renews the lease in the background, every third of its duration, until it is closed. */
  Lease keepAlive() {
    return new Lease();
  }

  /** A lease that is kept alive. */
  final class Lease implements AutoCloseable {
    private final ScheduledExecutorService renewals =
        Executors.newSingleThreadScheduledExecutor(
            task -> {
              var thread = new Thread(task, "lease of " + name());
              thread.setDaemon(true);
              return thread;
            });
    private volatile boolean lost;
    private volatile boolean stopping;

    private Lease() {
      long period = leaseMillis() / 3;
      renewals.scheduleAtFixedRate(this::renew, period, period, TimeUnit.MILLISECONDS);
    }

    /**
     * Returns if the run should go on; to be called often.
     *
     * @throws StopException when the trial should be completed with what was reported
     * @throws LeaseLostException when the run should be dropped
     */
    void check() throws StopException, LeaseLostException {
      if (lost) {
        throw new LeaseLostException(name(), null);
      }
      // Nothing can stop a run without a measurement: it would be worth nothing.
      if (stopping && measured) {
        throw new StopException(name());
      }
    }

    private void renew() {
      try {
        var answer =
            server
                .attempt()
                .renewLeases(
                    RenewLeasesRequest.newBuilder()
                        .setParent(study)
                        .putLeaseTokens(name(), token())
                        .build());
        var result = answer.getResultsOrThrow(name());
        lost = !result.getHeld();
        stopping = result.getShouldStop();
      } catch (StatusRuntimeException e) {
        // It may pass before the lease does: the next renewal is not far.
        lost = isRefused(e);
      }
    }

    @Override
    public void close() {
      renewals.shutdownNow();
    }
  }

  /** Repeats a call on the trial. */
  private <T> T call(Function<StudyServiceBlockingStub, T> call)
      throws LeaseLostException, InterruptedException {
    try {
      return server.studies(call);
    } catch (StatusRuntimeException e) {
      if (isRefused(e)) {
        throw new LeaseLostException(e.getMessage(), e);
      }
      throw e;
    }
  }

  /** Whether a call was refused because of the trial's state, or its absence: it is lost. */
  private static boolean isRefused(StatusRuntimeException e) {
    var code = e.getStatus().getCode();
    return code == Status.Code.FAILED_PRECONDITION || code == Status.Code.NOT_FOUND;
  }

  /** Returns for how long a renewal holds. Both times are of the server's clock. */
  private long leaseMillis() {
    long seconds =
        message.getLease().getExpireTime().getSeconds() - message.getStartTime().getSeconds();
    return seconds > 0 ? TimeUnit.SECONDS.toMillis(seconds) : DEFAULT_LEASE_MILLIS;
  }

  private String token() {
    return message.getLease().getToken();
  }

  private static Measurement measurement(long step, Map<String, List<Double>> metrics) {
    var out = Measurement.newBuilder().setStep(step);
    metrics.forEach(
        (id, runs) -> out.putMetrics(id, MetricValue.newBuilder().addAllRuns(runs).build()));
    return out.build();
  }
}
