// Asks the search of the built site the questions of cmd/dpareto-lab/notes/documentation.md, by the script that browsers
// run, and prints the rank of the page that answers. The exit code is 1 if one is not among the first three.
//
//     make docs && node tools/site/search.mjs [FOLDER-OF-THE-SITE]
import { readdirSync, readFileSync } from "node:fs"
import { createContext, runInContext } from "node:vm"

const site = process.argv[2] ?? ".bin/site"
const workers = `${site}/assets/javascripts/workers/`
const script = workers + readdirSync(workers).find((name) => /^search\..*\.js$/.test(name))

let listen, answered
const worker = {
  addEventListener: (_, listener) => (listen = listener),
  postMessage: (message) => answered(message),
  console: { warn() {} },
}
worker.self = worker
runInContext(readFileSync(script, "utf8"), createContext(worker))
const ask = (type, data) => new Promise((resolve) => ((answered = resolve), listen({ data: { type, data } })))
const [SETUP, QUERY] = [0, 2]

await ask(SETUP, { ...JSON.parse(readFileSync(`${site}/search/search_index.json`, "utf8")), options: {} })
const note = readFileSync(new URL("../../cmd/dpareto-lab/notes/documentation.md", import.meta.url), "utf8")
for (const [, question, typed, pages] of note.matchAll(/^\| ([^|]+\?) [^|]*\| ([^|]+) \| ([^|]+) \|/gm)) {
  const ranks = []
  for (const words of typed.split("; ")) {
    const { items } = (await ask(QUERY, words)).data
    const found = items.findIndex((sections) =>
      pages.split(", ").some((page) => sections[0].location.startsWith(`${page}.html`)),
    )
    ranks.push(found + 1 || "none")
    if (!(found + 1 <= 3 && found >= 0)) process.exitCode = 1
  }
  console.log(`${ranks.join(", ")}\t${question}`)
}
