package com.example.asktell;

import com.dpareto.v1.Accountant;
import com.dpareto.v1.Adjacency;
import com.dpareto.v1.Algorithm;
import com.dpareto.v1.AlgorithmSpec;
import com.dpareto.v1.Budget;
import com.dpareto.v1.ComputedSource;
import com.dpareto.v1.DoubleDomain;
import com.dpareto.v1.FrontKind;
import com.dpareto.v1.Goal;
import com.dpareto.v1.IntegerDomain;
import com.dpareto.v1.LeasePolicy;
import com.dpareto.v1.MetricRole;
import com.dpareto.v1.MetricSpec;
import com.dpareto.v1.ParameterSpec;
import com.dpareto.v1.PrivacySpec;
import com.dpareto.v1.ReportedSource;
import com.dpareto.v1.Scale;
import com.dpareto.v1.SparseVectorMechanism;
import com.dpareto.v1.StudySpec;
import com.dpareto.v1.Transform;
import com.google.protobuf.Duration;
import java.util.ArrayList;
import java.util.Map;
import java.util.Optional;
import java.util.random.RandomGenerator;

/**
 * A worker: asks for configurations of the sparse vector technique, runs them, tells what it
 * measured, and prints the Pareto front of ε and error.
 *
 * <pre>java -jar target/ask-tell.jar [TRIALS [SECONDS [WORKER]]]</pre>
 */
public final class AskTell {
  private final double trialSeconds; // how long a trial takes, as if it trained
  private final RandomGenerator random = RandomGenerator.getDefault();

  private AskTell(double trialSeconds) {
    this.trialSeconds = trialSeconds;
  }

  /**
   * Runs the worker.
   *
   * @param args the budget of the study (24), the seconds that a trial takes (0.3), the worker's id
   */
  public static void main(String[] args) throws InterruptedException {
    long trials = args.length > 0 ? Long.parseLong(args[0]) : 24;
    double seconds = args.length > 1 ? Double.parseDouble(args[1]) : 0.3;
    String workerId = args.length > 2 ? args[2] : "java-1";
    String address = Optional.ofNullable(System.getenv("DPARETO_SERVER")).orElse("127.0.0.1:8321");
    var worker = new AskTell(seconds);
    try (var server = new Server(address)) {
      var study = Study.createOrLoad(server, "svt-java", study(trials));
      for (var trial = study.ask(workerId); trial.isPresent(); trial = study.ask(workerId)) {
        worker.run(trial.get());
      }
      var front = study.front(FrontKind.FRONT_KIND_POSTERIOR);
      System.out.printf("front of hypervolume %.4g:%n", front.getHypervolume());
      for (var point : front.getPointsList()) {
        System.out.printf(
            "  ε %.3g, error %.3g: %s%n",
            point.getValuesOrThrow("epsilon").getValue(),
            point.getValuesOrThrow("error").getValue(),
            point.getTrial());
      }
    }
  }

  private void run(Trial trial) throws InterruptedException {
    try (var lease = trial.keepAlive()) {
      try {
        train(trial, lease);
      } catch (StopException e) {
        trial.completeWithLast();
      } catch (RuntimeException e) {
        trial.fail(e.toString());
        throw e;
      }
    } catch (LeaseLostException e) {
      System.err.println("dropped: " + e.getMessage());
    }
  }

  private void train(Trial trial, Trial.Lease lease)
      throws StopException, LeaseLostException, InterruptedException {
    long cutoff = trial.longValue("cutoff");
    double noiseScale = trial.doubleValue("noise_scale");
    for (int half = 1; half <= 2; half++) {
      var errors = new ArrayList<Double>(); // one for each replicate
      for (int run = 0; run < trial.replicates(); run++) {
        lease.check();
        Thread.sleep((long) (1000 * trialSeconds / 2 / trial.replicates()));
        errors.add(SparseVector.error(cutoff, noiseScale, random));
      }
      if (half == 1) {
        trial.report(half, Map.of("error", errors));
      } else {
        trial.complete(half, Map.of("error", errors));
      }
    }
    System.out.printf("%s: cutoff %d, noise_scale %.3g%n", trial.name(), cutoff, noiseScale);
  }

  private static com.dpareto.v1.Study study(long trials) {
    var cutoff =
        ParameterSpec.newBuilder()
            .setId("cutoff")
            .setIntegerDomain(IntegerDomain.newBuilder().setMin(1).setMax(30))
            .setScale(Scale.SCALE_LOG);
    var noiseScale =
        ParameterSpec.newBuilder()
            .setId("noise_scale")
            .setDoubleDomain(DoubleDomain.newBuilder().setMin(0.01).setMax(100))
            .setScale(Scale.SCALE_LOG);
    var privacy =
        PrivacySpec.newBuilder()
            .setSparseVector(
                SparseVectorMechanism.newBuilder()
                    .setCutoff("cutoff")
                    .setNoiseScale("noise_scale"))
            .setAdjacency(Adjacency.ADJACENCY_REPLACE_ONE)
            .setAccountant(Accountant.ACCOUNTANT_PURE);
    var epsilon = // computed by the server, from the parameters
        objective("epsilon", Transform.TRANSFORM_LOG, 10)
            .setComputed(ComputedSource.newBuilder().setPrivacy(privacy));
    var error = // measured here
        objective("error", Transform.TRANSFORM_LOGIT, 1)
            .setReported(ReportedSource.newBuilder().setSampleSize(10));
    var spec =
        StudySpec.newBuilder()
            .addParameters(cutoff)
            .addParameters(noiseScale)
            .addMetrics(epsilon)
            .addMetrics(error)
            .setReplicates(50)
            .setAlgorithm(AlgorithmSpec.newBuilder().setName(Algorithm.ALGORITHM_DEFAULT))
            .setBudget(Budget.newBuilder().setMaxTrials(trials))
            .setLease(LeasePolicy.newBuilder().setDuration(Duration.newBuilder().setSeconds(10)));
    return com.dpareto.v1.Study.newBuilder()
        .setDisplayName("Sparse vectors, by Java")
        .setSpec(spec)
        .build();
  }

  private static MetricSpec.Builder objective(String id, Transform transform, double reference) {
    return MetricSpec.newBuilder()
        .setId(id)
        .setRole(MetricRole.METRIC_ROLE_OBJECTIVE)
        .setGoal(Goal.GOAL_MINIMIZE)
        .setTransform(transform)
        .setReferenceValue(reference);
  }
}
