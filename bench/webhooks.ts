// Measures the latency and throughput of webhook deliveries with one unresponsive and one slow
// endpoint:
// node bench/webhooks.ts [--endpoints N] [--events N] [--rate N]
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { machine } from './engine/figures.ts'
import {
  CONNECTIONS_MAX,
  type Cost,
  type Plan,
  type Received,
  type SenderOptions,
  type Targets,
  UNHEALTHY,
} from './webhooks/plan.ts'
import { type ChildProgram, start } from './webhooks/process.ts'

const LATENCY_MAX_MS = 2_000
/** If no event arrives for this time, the remaining ones are lost. */
const TIMEOUT_MS = 20_000
const POLL_MS = 100

type Run = Received & Cost

async function main(): Promise<void> {
  const plan = readPlan()
  const endpoints = start('receivers.ts', `${plan.endpoints}`)
  print(`Machine: ${machine()}.`)
  print(
    `${plan.endpoints} endpoints × ${count(plan.events)} events; one never responds, one responds late.\n`,
  )
  try {
    const faults = await compare(plan, endpoints)
    print(faults.length === 0 ? 'All checks passed.' : `Failed checks:\n- ${faults.join('\n- ')}`)
    if (faults.length > 0) process.exitCode = 1
  } finally {
    await endpoints.end()
  }
}

function readPlan(): Plan & { readonly perSecond: number } {
  const number = (usual: number) => ({ type: 'string' as const, default: `${usual}` })
  const { values } = parseArgs({
    options: { endpoints: number(50), events: number(2_000), rate: number(20) },
  })
  const [endpoints, events, perSecond] = [values.endpoints, values.events, values.rate].map(Number)
  if (endpoints && endpoints > UNHEALTHY && events && perSecond) {
    return { endpoints, events, perSecond }
  }
  throw new Error(
    `The options take whole numbers, and there must be more than ${UNHEALTHY} endpoints.`,
  )
}

/** Returns the failed checks. */
async function compare(plan: Plan, endpoints: ChildProgram): Promise<string[]> {
  const atOnce = { ...plan, perSecond: null }
  const steady = await run('ours.ts', plan, endpoints)
  const burst = await run('ours.ts', atOnce, endpoints)
  const bare = await run('bare.ts', atOnce, endpoints)
  const { p50, p95, p99 } = steady.latencyMs
  print(
    `At ${plan.perSecond} events per second, from the event to its receipt at the healthy endpoints:`,
  )
  print(`p50 ${p50} ms, **p95 ${p95} ms**, p99 ${p99} ms. ${costText(steady)}\n`)
  print(`All at once: ${count(perSecond(burst))} deliveries per second. ${costText(burst)}`)
  print(`A bare loop: ${count(perSecond(bare))}. ${costText(bare)}`)
  print(`ev reaches **${(perSecond(burst) / perSecond(bare)).toFixed(2)}** of it.\n`)
  const faults = [
    ...faultsOf(plan, steady).map(fault => `steadily, ${fault}`),
    ...faultsOf(plan, burst).map(fault => `all at once, ${fault}`),
  ]
  if (p95 > LATENCY_MAX_MS) faults.push(`the p95 is ${p95} ms, above ${LATENCY_MAX_MS}`)
  return faults
}

/** Runs a sender process until the healthy endpoints have received all events or no more arrive. */
async function run(program: string, plan: Plan, endpoints: ChildProgram): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'ev-bench-'))
  await endpoints.ask('reset')
  const targets = await endpoints.ask<Targets>('targets')
  const sender = start(program, JSON.stringify({ plan, targets, folder } satisfies SenderOptions))
  try {
    await sender.ask('start')
    await allArrived(endpoints, wanted(plan))
    const cost = await sender.ask<Cost>('cost')
    return { ...(await endpoints.ask<Received>('figures')), ...cost }
  } finally {
    await sender.end()
    rmSync(folder, { recursive: true })
  }
}

async function allArrived(endpoints: ChildProgram, all: number): Promise<void> {
  let [arrived, changedAt] = [0, performance.now()]
  while (arrived < all && performance.now() - changedAt < TIMEOUT_MS) {
    await setTimeout(POLL_MS)
    const now = await endpoints.ask<number>('arrived')
    if (now > arrived) changedAt = performance.now()
    arrived = now
  }
}

function faultsOf(plan: Plan, { events, connectionsPeak }: Run): string[] {
  const faults: string[] = []
  if (events < wanted(plan)) {
    faults.push(`${count(wanted(plan) - events)} deliveries to healthy endpoints did not arrive`)
  }
  for (const [kind, most] of Object.entries(connectionsPeak)) {
    if (most > CONNECTIONS_MAX) faults.push(`a ${kind} endpoint had ${most} concurrent connections`)
  }
  return faults
}

const wanted = ({ endpoints, events }: Plan) => (endpoints - UNHEALTHY) * events

const perSecond = ({ events, seconds }: Run) => events / seconds

const costText = ({ events, repeated, cpuMs, peakRssMiB, connectionsPeak }: Run) => {
  const { dead, slow, healthy } = connectionsPeak
  const twice = repeated === 0 ? '' : `, ${count(repeated)} of them more than once`
  return (
    `(${count(events)} deliveries${twice}; ${((cpuMs / events) * 1_000).toFixed(0)} µs of CPU time each; ${peakRssMiB.toFixed(0)} MiB at most; ` +
    `peak connections: healthy ${healthy}, slow ${slow}, dead ${dead})`
  )
}

const count = (number: number) => number.toLocaleString('en', { maximumFractionDigits: 0 })

const print = (line: string) => console.log(line)

await main()
