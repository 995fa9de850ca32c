package com.example.asktell;

import com.dpareto.v1.CreateStudyRequest;
import com.dpareto.v1.Front;
import com.dpareto.v1.FrontKind;
import com.dpareto.v1.GetFrontRequest;
import com.dpareto.v1.StudyState;
import com.dpareto.v1.SuggestTrialsRequest;
import com.dpareto.v1.SuggestTrialsResponse;
import java.time.Duration;
import java.util.Optional;
import java.util.UUID;

/** A study of a server. */
final class Study {
  /** How long to wait where the server does not say. */
  private static final Duration ASK_AGAIN = Duration.ofSeconds(1);

  private final Server server;
  private final String name;

  private Study(Server server, String name) {
    this.server = server;
    this.name = name;
  }

  /**
   * Creates a study, or loads the one of that id if it has an equal spec.
   *
   * @throws io.grpc.StatusRuntimeException ALREADY_EXISTS if it has another spec
   */
  static Study createOrLoad(Server server, String id, com.dpareto.v1.Study study)
      throws InterruptedException {
    var request = CreateStudyRequest.newBuilder().setStudyId(id).setStudy(study).build();
    server.studies(stub -> stub.createStudy(request));
    return new Study(server, "studies/" + id);
  }

  /**
   * Returns a trial for a worker to run, or nothing when the study hands out no more. It waits
   * while there is none but may be one again: others hold all that the budget allows, or the study
   * is paused.
   *
   * @param workerId names the worker among those of the study. A worker that was restarted under
   *     its id gets the trial that it held, to be run from its beginning
   */
  Optional<Trial> ask(String workerId) throws InterruptedException {
    while (true) {
      var request =
          SuggestTrialsRequest.newBuilder()
              .setParent(name)
              .setCount(1)
              .setWorkerId(workerId)
              .setRequestId(newRequestId())
              .build();
      var answer = server.suggest(request);
      if (answer.getTrialsCount() > 0) {
        return Optional.of(new Trial(server, name, answer.getTrials(0)));
      }
      var pause =
          Duration.ofSeconds(
              answer.getRetryAfter().getSeconds(), answer.getRetryAfter().getNanos());
      if (pause.isZero()) {
        if (isDone(answer)) {
          return Optional.empty();
        }
        pause = ASK_AGAIN;
      }
      Thread.sleep(pause.toMillis());
    }
  }

  /** Reads the Pareto front. */
  Front front(FrontKind kind) throws InterruptedException {
    var request = GetFrontRequest.newBuilder().setName(name).setKind(kind).build();
    return server.front(request).getFront();
  }

  /** Whether an answer without trials, and without a time to ask again, is the last one. */
  private static boolean isDone(SuggestTrialsResponse answer) {
    return switch (answer.getEndReason()) {
      case END_REASON_BUDGET_SPENT,
          END_REASON_STAGNANT,
          END_REASON_SPACE_EXHAUSTED,
          END_REASON_PRIVACY_BUDGET_SPENT ->
          true;
      default -> answer.getStudyState() == StudyState.STUDY_STATE_COMPLETED;
    };
  }

  /** Returns an id that no other call has. The server stores ids best that begin with the time. */
  private static String newRequestId() {
    return String.format("%012x-%s", System.currentTimeMillis(), UUID.randomUUID());
  }
}
