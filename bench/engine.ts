// How quick the engine is, beside the naive way in the same run: node bench/engine.ts [--quick]
import { parseArgs } from 'node:util'
import { faultsOf, faultsOfRatio } from './engine/check.ts'
import { head, machine, row } from './engine/figures.ts'
import { type Measured, Track } from './engine/measure.ts'
import { SHAPES, type Shape, type ShapeName } from './engine/scenario.ts'
import type { Way } from './engine/scenario-run.ts'

const WAYS: readonly Way[] = ['ours', 'naive', 'naive-bare']

/** What is measured: these shapes at these distances. */
type Plan = {
  readonly shapes: readonly ShapeName[]
  readonly roundTripsMs: readonly number[]
  readonly repeats: number
  /** The most addresses that the naive way is given. */
  readonly naiveMax: number
}

const FULL: Plan = {
  shapes: ['thousand', 'hundred', 'usual', 'one'],
  roundTripsMs: [0, 20, 50],
  repeats: 3,
  naiveMax: Number.POSITIVE_INFINITY,
}
/** Within a minute: what the figures of the README rest on. */
const QUICK: Plan = {
  shapes: ['thousand', 'hundred'],
  roundTripsMs: [50],
  repeats: 1,
  naiveMax: 2_000,
}

async function main(): Promise<void> {
  const plan = planOf(process.argv.slice(2))
  say(
    `Machine: ${machine()}; ${plan.repeats === 1 ? 'one run' : `medians of ${plan.repeats} runs`}.`,
  )
  const faults: string[] = []
  for (const name of plan.shapes) {
    const shape = SHAPES[name]
    say(`\n### ${shape.name}\n`)
    say(
      `At most ${shape.sessionsPerHost} connections to a host and ${shape.concurrency} in all, both ways; ev asks ${shape.recipientsPerSession} recipients in one.\n`,
    )
    say(head())
    for (const roundTripMs of plan.roundTripsMs) {
      faults.push(...(await compare(name, roundTripMs, plan)))
    }
  }
  say(faults.length === 0 ? '\nAll checks hold.' : `\nDoes not hold:\n- ${faults.join('\n- ')}`)
  if (faults.length > 0) process.exitCode = 1
}

/** All ways in turn, again and again; prints their rows and gives what is wrong. */
async function compare(name: ShapeName, roundTripMs: number, plan: Plan): Promise<string[]> {
  const shape: Shape = SHAPES[name]
  const runs: Record<Way, Measured[]> = { ours: [], naive: [], 'naive-bare': [] }
  const track = await Track.open(shape, roundTripMs)
  try {
    // The world's code is compiled while it runs: the first run would pay for the others.
    await track.measure('ours', shape.addresses)
    for (let turn = 0; turn < plan.repeats; turn += 1) {
      for (const way of WAYS) {
        const naiveAll = roundTripMs === 0 ? shape.addresses : shape.naiveAddresses
        const naiveCount = Math.min(naiveAll, plan.naiveMax)
        runs[way].push(await track.measure(way, way === 'ours' ? shape.addresses : naiveCount))
      }
    }
  } finally {
    await track.close()
  }
  for (const way of WAYS) say(row(roundTripMs, runs[way], runs.ours))
  return [
    ...Object.values(runs).flatMap(all => all.flatMap(run => faultsOf(run, shape))),
    ...faultsOfRatio(name, roundTripMs, runs.ours, runs.naive),
  ]
}

function planOf(args: string[]): Plan {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: 'boolean' },
      shape: { type: 'string', multiple: true },
      'round-trip': { type: 'string', multiple: true },
      repeats: { type: 'string' },
    },
  })
  const plan = values.quick === true ? QUICK : FULL
  const unknown = values.shape?.find(name => !Object.hasOwn(SHAPES, name))
  if (unknown !== undefined) {
    throw new Error(`"${unknown}" is no shape: ${Object.keys(SHAPES).join(', ')}.`)
  }
  return {
    ...plan,
    shapes: (values.shape as ShapeName[] | undefined) ?? plan.shapes,
    roundTripsMs: values['round-trip']?.map(Number) ?? plan.roundTripsMs,
    repeats: Number(values.repeats ?? plan.repeats),
  }
}

const say = (line: string) => process.stdout.write(`${line}\n`)

await main()
