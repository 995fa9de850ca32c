// A worker: asks for configurations of the sparse vector technique, runs them, tells what it
// measured, and prints the Pareto front of ε and error.
//
//     npm start -- [--trials 24] [--seconds 0.3] [--worker typescript-1]

import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

import type { MessageInitShape } from "@bufbuild/protobuf";

import { LeaseLost, Stop, Study, type Trial } from "./client.js";
import { FrontKind } from "./gen/dpareto/v1/front_service_pb.js";
import { Goal, MetricRole, Transform } from "./gen/dpareto/v1/metric_pb.js";
import { Scale } from "./gen/dpareto/v1/parameter_pb.js";
import { Accountant, Adjacency } from "./gen/dpareto/v1/privacy_pb.js";
import { Algorithm, type StudySpecSchema } from "./gen/dpareto/v1/study_pb.js";
import { sparseVectorError } from "./sparse_vector.js";

const { values: flags } = parseArgs({
  options: {
    trials: { type: "string", default: "24" }, // budget of the study
    seconds: { type: "string", default: "0.3" }, // how long a trial takes, as if it trained
    worker: { type: "string", default: "typescript-1" },
  },
});
const trialSeconds = Number(flags.seconds);

const spec: MessageInitShape<typeof StudySpecSchema> = {
  parameters: [
    { id: "cutoff", scale: Scale.LOG, domain: { case: "integerDomain", value: { min: 1n, max: 30n } } },
    { id: "noise_scale", scale: Scale.LOG, domain: { case: "doubleDomain", value: { min: 0.01, max: 100 } } },
  ],
  metrics: [
    {
      // Computed by the server, from the parameters.
      id: "epsilon",
      role: MetricRole.OBJECTIVE,
      goal: Goal.MINIMIZE,
      transform: Transform.LOG,
      referenceValue: 10,
      source: {
        case: "computed",
        value: {
          function: {
            case: "privacy",
            value: {
              mechanism: { case: "sparseVector", value: { cutoff: "cutoff", noiseScale: "noise_scale" } },
              adjacency: Adjacency.REPLACE_ONE,
              accountant: Accountant.PURE,
            },
          },
        },
      },
    },
    {
      // Measured here.
      id: "error",
      role: MetricRole.OBJECTIVE,
      goal: Goal.MINIMIZE,
      transform: Transform.LOGIT,
      referenceValue: 1,
      source: { case: "reported", value: { sampleSize: 10 } },
    },
  ],
  replicates: 50,
  algorithm: { name: Algorithm.DEFAULT },
  budget: { maxTrials: BigInt(flags.trials) },
  lease: { duration: { seconds: 10n } },
};

async function run(trial: Trial): Promise<void> {
  try {
    await trial.whileHeld((signal) => train(trial, signal));
  } catch (error) {
    if (error instanceof Stop) {
      await trial.completeWithLast();
    } else if (error instanceof LeaseLost) {
      console.error(`dropped: ${error.message}`);
    } else {
      await trial.fail(String(error));
      throw error;
    }
  }
}

async function train(trial: Trial, signal: AbortSignal): Promise<void> {
  const cutoff = trial.int("cutoff");
  const noiseScale = trial.double("noise_scale");
  for (const half of [1, 2]) {
    await sleep((trialSeconds / 2) * 1000, undefined, { signal });
    // One for each replicate.
    const errors = Array.from({ length: trial.replicates }, () => sparseVectorError(cutoff, noiseScale));
    if (half === 1) {
      await trial.report(half, { error: errors });
    } else {
      await trial.complete(half, { error: errors });
    }
  }
  console.log(`${trial.name}: cutoff ${cutoff}, noise_scale ${noiseScale.toPrecision(3)}`);
}

const url = `http://${process.env["DPARETO_SERVER"] ?? "127.0.0.1:8321"}`;
const study = await Study.createOrLoad(url, "svt-typescript", { displayName: "Sparse vectors, by TypeScript", spec });
for await (const trial of study.trials(flags.worker)) {
  await run(trial);
}

const front = await study.front(FrontKind.POSTERIOR);
console.log(`front of hypervolume ${front.hypervolume.toPrecision(4)}:`);
for (const point of front.points) {
  const [epsilon, error] = ["epsilon", "error"].map((id) => point.values[id]?.value.toPrecision(3));
  console.log(`  ε ${epsilon}, error ${error}: ${point.trial}`);
}
