// Compares the speed of the engine with a naive verifier: node bench/engine.ts [--quick]
import { parseArgs } from 'node:util'
import { faultsOf, faultsOfRatio } from './engine/check.ts'
import { head, machine, row } from './engine/figures.ts'
import { type Measured, TestBed } from './engine/measure.ts'
import type { Variant } from './engine/run-options.ts'
import { SHAPES, type Shape, type ShapeName } from './engine/scenario.ts'

const VARIANTS: readonly Variant[] = ['ours', 'naive', 'naive-bare']

/** Each shape is measured at each round-trip time. */
type Plan = {
  readonly shapes: readonly ShapeName[]
  readonly roundTripsMs: readonly number[]
  readonly repeats: number
  /** Maximum number of addresses for the naive variants. */
  readonly naiveMax: number
}

const FULL: Plan = {
  shapes: ['thousand', 'hundred', 'usual', 'one'],
  roundTripsMs: [0, 20, 50],
  repeats: 3,
  naiveMax: Number.POSITIVE_INFINITY,
}
/** Less than a minute; the figures in the README come from this plan. */
const QUICK: Plan = {
  shapes: ['thousand', 'hundred'],
  roundTripsMs: [50],
  repeats: 1,
  naiveMax: 2_000,
}

async function main(): Promise<void> {
  const plan = planOf(process.argv.slice(2))
  print(
    `Machine: ${machine()}; ${plan.repeats === 1 ? 'one run' : `medians of ${plan.repeats} runs`}.`,
  )
  const faults: string[] = []
  for (const name of plan.shapes) {
    const shape = SHAPES[name]
    print(`\n### ${shape.name}\n`)
    print(
      `At most ${shape.sessionsPerHost} connections to a host and ${shape.concurrency} in total, for all variants; ev probes ${shape.recipientsPerSession} recipients in each.\n`,
    )
    print(head())
    for (const roundTripMs of plan.roundTripsMs) {
      faults.push(...(await compare(name, roundTripMs, plan)))
    }
  }
  print(faults.length === 0 ? '\nAll checks passed.' : `\nFailed checks:\n- ${faults.join('\n- ')}`)
  if (faults.length > 0) process.exitCode = 1
}

/** Runs the variants alternately and prints their rows. Returns the failed checks. */
async function compare(name: ShapeName, roundTripMs: number, plan: Plan): Promise<string[]> {
  const shape: Shape = SHAPES[name]
  const runs: Record<Variant, Measured[]> = { ours: [], naive: [], 'naive-bare': [] }
  const testBed = await TestBed.open(shape, roundTripMs)
  try {
    // Warm-up, so that the first run does not pay for compiling the simulator.
    await testBed.measure('ours', shape.addresses)
    for (let repeat = 0; repeat < plan.repeats; repeat += 1) {
      for (const variant of VARIANTS) {
        const naiveAll = roundTripMs === 0 ? shape.addresses : shape.naiveAddresses
        const naiveCount = Math.min(naiveAll, plan.naiveMax)
        runs[variant].push(
          await testBed.measure(variant, variant === 'ours' ? shape.addresses : naiveCount),
        )
      }
    }
  } finally {
    await testBed.close()
  }
  for (const variant of VARIANTS) print(row(roundTripMs, runs[variant], runs.ours))
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
    throw new Error(
      `"${unknown}" is not a shape. The shapes are ${Object.keys(SHAPES).join(', ')}.`,
    )
  }
  return {
    ...plan,
    shapes: (values.shape as ShapeName[] | undefined) ?? plan.shapes,
    roundTripsMs: values['round-trip']?.map(Number) ?? plan.roundTripsMs,
    repeats: Number(values.repeats ?? plan.repeats),
  }
}

const print = (line: string) => process.stdout.write(`${line}\n`)

await main()
