// How soon events arrive and how many, one endpoint dead and one slow: node bench/webhooks.ts [--endpoints N] [--events N] [--rate N]
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { machine } from './engine/figures.ts'
import {
  CONNECTIONS_MAX,
  type Cost,
  type Errand,
  type Places,
  type Plan,
  type Received,
  UNHEALTHY,
} from './webhooks/plan.ts'
import { type Helper, start } from './webhooks/process.ts'

const LATENCY_MAX_MS = 2_000
/** Nothing new for so long: something is lost. */
const TIMEOUT_MS = 20_000
const POLL_MS = 100

type Run = Received & Cost

async function main(): Promise<void> {
  const plan = readPlan()
  const endpoints = start('receivers.ts', `${plan.endpoints}`)
  say(`Machine: ${machine()}.`)
  say(
    `${plan.endpoints} endpoints × ${count(plan.events)} events; one is dead, one answers late.\n`,
  )
  try {
    const faults = await compare(plan, endpoints)
    say(faults.length === 0 ? 'All checks hold.' : `Does not hold:\n- ${faults.join('\n- ')}`)
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
  throw new Error(`Give whole numbers, and more than ${UNHEALTHY} endpoints.`)
}

/** Gives what does not hold. */
async function compare(plan: Plan, endpoints: Helper): Promise<string[]> {
  const atOnce = { ...plan, perSecond: null }
  const steady = await run('ours.ts', plan, endpoints)
  const burst = await run('ours.ts', atOnce, endpoints)
  const bare = await run('bare.ts', atOnce, endpoints)
  const { p50, p95, p99 } = steady.latencyMs
  say(
    `At ${plan.perSecond} events a second, from the event to its receipt at the healthy endpoints:`,
  )
  say(`p50 ${p50} ms, **p95 ${p95} ms**, p99 ${p99} ms. ${costOf(steady)}\n`)
  say(`All at once: ${count(perSecond(burst))} deliveries a second. ${costOf(burst)}`)
  say(`A bare loop: ${count(perSecond(bare))}. ${costOf(bare)}`)
  say(`So ours reaches **${(perSecond(burst) / perSecond(bare)).toFixed(2)}** of it.\n`)
  const faults = [
    ...faultsOf(plan, steady).map(fault => `steadily, ${fault}`),
    ...faultsOf(plan, burst).map(fault => `all at once, ${fault}`),
  ]
  if (p95 > LATENCY_MAX_MS) faults.push(`the p95 is ${p95} ms, above ${LATENCY_MAX_MS}`)
  return faults
}

/** A sender in a process of its own, until all healthy endpoints have all events or no more come. */
async function run(program: string, plan: Plan, endpoints: Helper): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'ev-bench-'))
  await endpoints.ask('forget')
  const places = await endpoints.ask<Places>('places')
  const sender = start(program, JSON.stringify({ plan, places, folder } satisfies Errand))
  try {
    await sender.ask('begin')
    await allArrived(endpoints, wanted(plan))
    const cost = await sender.ask<Cost>('cost')
    return { ...(await endpoints.ask<Received>('figures')), ...cost }
  } finally {
    await sender.end()
    rmSync(folder, { recursive: true })
  }
}

async function allArrived(endpoints: Helper, all: number): Promise<void> {
  let [arrived, changedAt] = [0, performance.now()]
  while (arrived < all && performance.now() - changedAt < TIMEOUT_MS) {
    await setTimeout(POLL_MS)
    const now = await endpoints.ask<number>('arrived')
    if (now > arrived) changedAt = performance.now()
    arrived = now
  }
}

function faultsOf(plan: Plan, { events, connectionsMost }: Run): string[] {
  const faults: string[] = []
  if (events < wanted(plan)) {
    faults.push(`${count(wanted(plan) - events)} deliveries to healthy endpoints did not arrive`)
  }
  for (const [manner, most] of Object.entries(connectionsMost)) {
    if (most > CONNECTIONS_MAX) faults.push(`a ${manner} endpoint had ${most} connections at once`)
  }
  return faults
}

const wanted = ({ endpoints, events }: Plan) => (endpoints - UNHEALTHY) * events

const perSecond = ({ events, seconds }: Run) => events / seconds

const costOf = ({ events, repeated, cpuMs, peakRssMiB, connectionsMost }: Run) => {
  const { dead, slow, healthy } = connectionsMost
  const twice = repeated === 0 ? '' : `, ${count(repeated)} of them more than once`
  return (
    `(${count(events)} deliveries${twice}; ${((cpuMs / events) * 1_000).toFixed(0)} µs of CPU each; ${peakRssMiB.toFixed(0)} MiB at most; ` +
    `connections at once: healthy ${healthy}, slow ${slow}, dead ${dead})`
  )
}

const count = (number: number) => number.toLocaleString('en', { maximumFractionDigits: 0 })

const say = (line: string) => console.log(line)

await main()
