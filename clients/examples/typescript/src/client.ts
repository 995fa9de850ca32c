// The part of a client that every worker needs: calls that survive a restart of the server,
// and trials whose leases are kept alive.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";

import { type Front, type FrontKind, FrontService } from "./gen/dpareto/v1/front_service_pb.js";
import { StudyState, type StudySchema } from "./gen/dpareto/v1/study_pb.js";
import { EndReason, StudyService, type SuggestTrialsResponse } from "./gen/dpareto/v1/study_service_pb.js";
import type { Trial as TrialMessage } from "./gen/dpareto/v1/trial_pb.js";
import { BadRequestSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.js";

/** The server asks to complete the trial with what was measured so far. */
export class Stop extends Error {}

/** Another worker has the trial, or it has ended: the run is to be dropped. */
export class LeaseLost extends Error {}

/** Time limit of one attempt of a call, in milliseconds. */
const attemptMs = 15_000;

/** Time limit of one attempt of a call that may fit a model, in milliseconds. */
const modelMs = 120_000;

/** Values by metric id: one for every independent run. */
export type Metrics = Record<string, number[]>;

/** A study of a server. */
export class Study {
  private constructor(
    private readonly studies: Client<typeof StudyService>,
    private readonly fronts: Client<typeof FrontService>,
    readonly name: string,
  ) {}

  /**
   * Creates a study, or loads the one of that id if it has an equal spec. With another spec
   * the error has the code AlreadyExists.
   *
   * @param url of the server, for example http://127.0.0.1:8321
   */
  static async createOrLoad(url: string, id: string, study: MessageInitShape<typeof StudySchema>): Promise<Study> {
    const transport = createGrpcTransport({ baseUrl: url });
    const created = new Study(createClient(StudyService, transport), createClient(FrontService, transport), `studies/${id}`);
    await repeat((options) => created.studies.createStudy({ studyId: id, study }, options));
    return created;
  }

  /**
   * Yields trials for a worker until the study hands out no more. It waits while there are
   * none but may be again: others hold all that the budget allows, or the study is paused.
   *
   * The id names the worker among those of the study. A worker that was restarted under its
   * id first gets the trial that it held, to be run from its beginning.
   */
  async *trials(workerId: string): AsyncGenerator<Trial, void, undefined> {
    for (;;) {
      const request = { parent: this.name, count: 1, workerId, requestId: newRequestId() };
      const answer = await repeat((options) => this.studies.suggestTrials(request, options), modelMs);
      for (const trial of answer.trials) {
        yield new Trial(this.studies, this.name, trial);
      }
      if (answer.trials.length > 0) {
        continue;
      }
      const pause = answer.retryAfter ? durationMs(answer.retryAfter) : 0;
      if (pause <= 0 && isDone(answer)) {
        return;
      }
      await sleep(pause > 0 ? pause : 1000);
    }
  }

  /** Reads the Pareto front. */
  async front(kind: FrontKind): Promise<Front> {
    const { front } = await repeat((options) => this.fronts.getFront({ name: this.name, kind }, options), modelMs);
    return present(front);
  }
}

/** A configuration to run, which is the worker's for as long as its lease holds. */
export class Trial {
  private measured = false;

  constructor(
    private readonly studies: Client<typeof StudyService>,
    private readonly study: string,
    private readonly message: TrialMessage,
  ) {}

  get name(): string {
    return this.message.name;
  }

  /** How many independent runs to make. */
  get replicates(): number {
    return this.message.replicates;
  }

  /** A value of a double or discrete parameter. */
  double(id: string): number {
    const kind = this.message.parameters[id]?.kind;
    if (kind?.case !== "doubleValue") {
      throw new TypeError(`${this.name} has no double ${id}`);
    }
    return kind.value;
  }

  /** A value of an integer parameter. It is within ±2⁵³, where numbers are exact. */
  int(id: string): number {
    const kind = this.message.parameters[id]?.kind;
    if (kind?.case !== "intValue") {
      throw new TypeError(`${this.name} has no integer ${id}`);
    }
    return Number(kind.value);
  }

  /**
   * Reports what was measured on the way, which renews the lease.
   *
   * @throws Stop when the trial should be completed with what was reported
   * @throws LeaseLost
   */
  async report(step: number, metrics: Metrics): Promise<void> {
    const request = { name: this.name, leaseToken: this.token, measurement: measurement(step, metrics) };
    const answer = await this.call((options) => this.studies.addMeasurement(request, options));
    this.measured = true;
    if (answer.shouldStop) {
      throw new Stop(answer.stopReason);
    }
  }

  /**
   * Completes the trial with its final metrics. They are taken after the end of the lease,
   * too, unless another worker was faster.
   *
   * @throws LeaseLost
   */
  async complete(step: number, metrics: Metrics): Promise<void> {
    await this.end({ case: "measurement", value: measurement(step, metrics) });
  }

  /** Completes the trial with the measurement that was reported last. */
  async completeWithLast(): Promise<void> {
    await this.end({ case: "useLastMeasurement", value: {} });
  }

  /** Ends the attempt: the machinery failed, which says nothing about the configuration. */
  async fail(reason: string): Promise<void> {
    await this.end({ case: "failure", value: { reason: reason.slice(0, 2000), retryable: true } });
  }

  private async end(outcome: NonNullable<MessageInitShape<typeof StudyService.method.completeTrial.input>["outcome"]>): Promise<void> {
    const request = { name: this.name, leaseToken: this.token, outcome };
    await this.call((options) => this.studies.completeTrial(request, options));
  }

  /**
   * Does work while the lease is renewed, every third of its duration. The work should stop
   * when its signal is aborted.
   *
   * @throws Stop or LeaseLost where that is why the signal was aborted; else what work throws
   *
   * Renewals need the event loop: a training that computes for long without awaiting
   * anything belongs into a worker thread.
   */
  async whileHeld(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const controller = new AbortController();
    const renewals = this.renewUntil(controller);
    try {
      await work(controller.signal);
    } catch (error) {
      throw controller.signal.aborted ? controller.signal.reason : error;
    } finally {
      controller.abort();
      await renewals;
    }
  }

  private async renewUntil(controller: AbortController): Promise<void> {
    const { signal } = controller;
    while (!signal.aborted) {
      try {
        await sleep(this.leaseMs / 3, undefined, { signal });
        await this.renew(signal);
      } catch (error) {
        // Nothing can stop a run without a measurement: it would be worth nothing.
        if (error instanceof LeaseLost || (error instanceof Stop && this.measured)) {
          controller.abort(error);
        }
        // Everything else may pass before the lease does.
      }
    }
  }

  private async renew(signal: AbortSignal): Promise<void> {
    const request = { parent: this.study, leaseTokens: { [this.name]: this.token } };
    const answer = await this.call((options) => this.studies.renewLeases(request, options), signal);
    const result = answer.results[this.name];
    if (!result?.held) {
      throw new LeaseLost(this.name);
    }
    if (result.shouldStop) {
      throw new Stop(this.name);
    }
  }

  /** Repeats a call on the trial. A refusal because of the trial's state means that it is lost. */
  private async call<T>(attempt: (options: CallOptions) => Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await repeat(attempt, attemptMs, signal);
    } catch (error) {
      if (error instanceof ConnectError && (error.code === Code.FailedPrecondition || error.code === Code.NotFound)) {
        throw new LeaseLost(error.message, { cause: error });
      }
      throw error;
    }
  }

  /** For how long a renewal holds. Both times are of the server's clock. */
  private get leaseMs(): number {
    const { startTime } = this.message;
    const expireTime = this.message.lease?.expireTime;
    const lasts = startTime && expireTime ? Number(expireTime.seconds - startTime.seconds) * 1000 : 0;
    return lasts > 0 ? lasts : 60_000;
  }

  private get token(): string {
    return present(this.message.lease).token;
  }
}

/**
 * Makes a call until there is an answer, an error that lasts, or the signal. All attempts are
 * the same request: where the server could take the second for another one, it has an id.
 */
async function repeat<T>(attempt: (options: CallOptions) => Promise<T>, timeoutMs = attemptMs, signal?: AbortSignal): Promise<T> {
  const canStop = signal ? { signal } : {};
  for (let pause = 50; ; pause = Math.min(2 * pause, 1000)) {
    try {
      return await attempt({ timeoutMs, ...canStop });
    } catch (thrown) {
      const error = ConnectError.from(thrown);
      if (signal?.aborted || !isTransient(error)) {
        throw described(error);
      }
      console.error(`again after: ${error.message}`);
      // Half of the pause is random, so that workers do not return all at once.
      await sleep(retryDelayMs(error) + (pause * (1 + Math.random())) / 2, undefined, canStop);
    }
  }
}

/**
 * Whether another attempt can succeed: the server cannot be reached, is stopping, lost a race,
 * did not answer in time, or says when to come again.
 */
function isTransient(error: ConnectError): boolean {
  switch (error.code) {
    case Code.Unavailable:
    case Code.Aborted:
    case Code.Canceled:
    case Code.DeadlineExceeded:
      return true;
    case Code.ResourceExhausted:
      return retryDelayMs(error) > 0;
    default:
      return false;
  }
}

function retryDelayMs(error: ConnectError): number {
  const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return delay ? durationMs(delay) : 0;
}

/** An error that names every field that is wrong, where the server does. */
function described(error: ConnectError): ConnectError {
  const fields = error.findDetails(BadRequestSchema).flatMap((detail) => detail.fieldViolations);
  if (fields.length === 0) {
    return error;
  }
  const text = fields.map((field) => `${field.field}: ${field.description}`).join("; ");
  return new ConnectError(text, error.code, error.metadata, undefined, error);
}

/** Whether an answer without trials, and without a time to ask again, is the last one. */
function isDone(answer: SuggestTrialsResponse): boolean {
  switch (answer.endReason) {
    case EndReason.BUDGET_SPENT:
    case EndReason.STAGNANT:
    case EndReason.SPACE_EXHAUSTED:
    case EndReason.PRIVACY_BUDGET_SPENT:
      return true;
    default:
      return answer.studyState === StudyState.COMPLETED;
  }
}

function measurement(step: number, metrics: Metrics) {
  return {
    step: BigInt(step),
    metrics: Object.fromEntries(Object.entries(metrics).map(([id, runs]) => [id, { runs }])),
  };
}

/** An id that no other call has. The server stores ids best that begin with the time. */
function newRequestId(): string {
  return `${Date.now().toString(16).padStart(12, "0")}-${randomUUID()}`;
}

/** What the server always sends. */
function present<T>(value: T | undefined): T {
  if (value === undefined) {
    throw new TypeError("the answer lacks a field");
  }
  return value;
}
