import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { percentile } from '../engine/figures.ts'
import type { ClientResult } from './flood-clients.ts'
import { type Served, startBare } from './servers.ts'

/** Number of clients that connect at the same time. */
const CLIENTS = 3_000
const ROUNDS = 3
/** Warm-up clients, too few to be refused, so that the code is compiled before the measurement. */
const WARMING = 500
/**
 * Maximum p99 of refusals, unless the server that only refuses is as slow: Node accepts one
 * connection in each turn of the event loop.
 */
const REFUSAL_P99_MAX_MS = 200
/** Maximum of the p99 compared with that server; the difference is the noise of a busy machine. */
const REFUSAL_RATIO_MAX = 1.25
/** Maximum time of the slowest response. */
const SLOWEST_MAX_MS = 5_000

/**
 * Runs three rounds of clients that send one verification each, alternating with a server that only
 * refuses. Returns the failed checks.
 */
export async function compareFlood(served: Served, domains: number, print: (line: string) => void) {
  const bare = await startBare('refusing.ts')
  try {
    return await compareRounds(served, { ...served, url: bare.url }, domains, print)
  } finally {
    await bare.close()
  }
}

async function compareRounds(
  served: Served,
  bare: Served,
  domains: number,
  print: (line: string) => void,
) {
  print(
    `| round of ${CLIENTS} | responses by status | connected p99 | refused p50 | p99 | 200 p50 | p99 | resets and refused connections |`,
  )
  print('|---|---|---|---|---|---|---|---|')
  const all: ClientResult[] = []
  const least: ClientResult[] = []
  for (const target of [served, bare]) await runClients(target, domains, 'warm', WARMING)
  for (let round = 1; round <= ROUNDS; round++) {
    const refusedOnly = await runClients(bare, domains, `r${round}`, CLIENTS)
    print(row(`${round}, bare`, refusedOnly))
    least.push(...refusedOnly)
    const results = await runClients(served, domains, `r${round}`, CLIENTS)
    print(row(`${round}`, results))
    all.push(...results)
  }
  print(row('all, bare', least))
  print(row('all', all))
  print(`Peak memory of the service so far: ${served.memory().peak.toFixed(0)} MiB.`)
  const refused = all.filter(isRefused)
  const p99 = percentile(refused.map(ms), 0.99)
  const leastP99 = percentile(least.filter(isRefused).map(ms), 0.99)
  const slowest = Math.max(...all.map(ms).filter(Number.isFinite))
  print(
    `p99 of refusals: ${(p99 / leastP99).toFixed(2)} of the bare server. Slowest response: ${slowest.toFixed(0)} ms.`,
  )
  const faults: string[] = []
  const broken = all.filter(({ fault }) => fault !== null).length
  if (broken > 0) faults.push(`${broken} connections were reset or refused`)
  if (p99 > Math.max(REFUSAL_P99_MAX_MS, leastP99 * REFUSAL_RATIO_MAX)) {
    faults.push(`p99 of refusals is ${p99.toFixed(0)} ms, of the bare ${leastP99.toFixed(0)} ms`)
  }
  if (slowest > SLOWEST_MAX_MS) faults.push(`the slowest response took ${slowest.toFixed(0)} ms`)
  if (refused.some(one => !one.hasRetryAfter)) faults.push('a refusal has no Retry-After')
  const others = all.filter(({ status }) => ![200, 429, 503].includes(status ?? 0)).length
  if (others > 0)
    faults.push(`${others} clients had no response, or another status than 200, 429 and 503`)
  return faults
}

async function runClients(
  { url, key }: Served,
  domains: number,
  name: string,
  clients: number,
): Promise<ClientResult[]> {
  const options = { url, key, domains, name, clients }
  const args = Object.entries(options).flatMap(([option, value]) => [`--${option}`, `${value}`])
  const child = spawn(process.execPath, [join(import.meta.dirname, 'flood-clients.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return JSON.parse(await text(child.stdout))
}

const isRefused = ({ status }: ClientResult) => status === 429 || status === 503
const ms = ({ answerMs }: ClientResult) => answerMs

function row(name: string, results: readonly ClientResult[]): string {
  const statuses = countsOf(results.map(({ status }) => `${status ?? 'none'}`))
  const faults = countsOf(results.flatMap(({ fault }) => fault ?? []))
  const at = (values: readonly number[], share: number) =>
    values.length === 0 ? '' : `${percentile(values, share).toFixed(0)} ms`
  const ofKind = (is: (one: ClientResult) => boolean) => {
    const values = results.filter(is).map(ms)
    return [at(values, 0.5), at(values, 0.99)]
  }
  const connected = results.filter(({ status }) => status !== null)
  const connectMs = connected.map(one => one.connectMs)
  const cells = [
    ...[name, statuses, at(connectMs, 0.99), ...ofKind(isRefused)],
    ...[...ofKind(({ status }) => status === 200), faults === '' ? '0' : faults],
  ]
  return `| ${cells.join(' | ')} |`
}

function countsOf(values: readonly string[]): string {
  const counts = Map.groupBy(values, value => value)
  return [...counts].map(([value, { length }]) => `${value}: ${length}`).join(', ')
}
