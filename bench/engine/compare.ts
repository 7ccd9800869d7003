import { parseArgs } from 'node:util'
import { faultsOf } from './check.ts'
import { head, isSimulatorBusy, machine, row } from './figures.ts'
import { type Measured, TestBed } from './measure.ts'
import type { Program } from './run-options.ts'
import { SHAPES, type ShapeName } from './scenario.ts'

/** Each shape is measured at each round-trip time. */
type Plan = {
  readonly shapes: readonly ShapeName[]
  readonly roundTripsMs: readonly number[]
  readonly repeats: number
}

const FULL: Plan = {
  shapes: ['1k-1k', '10k-10k', '10k-100', '10k-hoster'],
  roundTripsMs: [0, 50],
  repeats: 3,
}
const QUICK: Plan = { shapes: ['1k-1k', '10k-100', '10k-hoster'], roundTripsMs: [50], repeats: 1 }
/** Added by `--long`. */
const LONG: ShapeName = '100k-10k'

/** Compares a program of ev with the bare probe. Failed checks set the exit code. */
export async function compareWithBareProbe(
  program: Exclude<Program, 'bare'>,
  args: readonly string[],
): Promise<void> {
  const plan = readPlan(args)
  const runsText = plan.repeats === 1 ? 'one run' : `medians of ${plan.repeats} runs`
  print(`Machine: ${machine()}; ${runsText}.\n\n${head()}`)
  const faults: string[] = []
  let isBusy = false
  for (const name of plan.shapes) {
    for (const roundTripMs of plan.roundTripsMs) {
      const { bare, ours } = await measure(program, name, roundTripMs, plan.repeats)
      for (const runs of [bare, ours]) {
        print(row(SHAPES[name], roundTripMs, runs, bare))
        isBusy ||= isSimulatorBusy(runs)
        faults.push(...runs.flatMap(run => faultsOf(run, SHAPES[name])))
      }
    }
  }
  if (isBusy) print(BUSY_NOTE)
  print(faults.length === 0 ? '\nAll checks passed.' : `\nFailed checks:\n- ${faults.join('\n- ')}`)
  if (faults.length > 0) process.exitCode = 1
}

const BUSY_NOTE =
  '\n* The simulator used at least 90 % of a core, so it limited the speed and not the program: ' +
  'a faster program would have the same speed. Compare the CPU.'

/** Runs the bare probe and the program alternately. */
async function measure(
  program: Program,
  name: ShapeName,
  roundTripMs: number,
  repeats: number,
): Promise<{ readonly bare: readonly Measured[]; readonly ours: readonly Measured[] }> {
  const [bare, ours]: [Measured[], Measured[]] = [[], []]
  const testBed = await TestBed.open(SHAPES[name], roundTripMs)
  try {
    // Warm-up, so that the first run does not pay for compiling the simulator.
    await testBed.measure('bare')
    for (let repeat = 0; repeat < repeats; repeat += 1) {
      bare.push(await testBed.measure('bare'))
      ours.push(await testBed.measure(program))
    }
  } finally {
    await testBed.close()
  }
  return { bare, ours }
}

function readPlan(args: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean' },
      long: { type: 'boolean' },
      shape: { type: 'string', multiple: true },
      'round-trip': { type: 'string', multiple: true },
      repeats: { type: 'string' },
    },
  })
  const plan = values.quick === true ? QUICK : FULL
  const shapes = values.shape ?? [...plan.shapes, ...(values.long === true ? [LONG] : [])]
  const unknown = shapes.find(name => !Object.hasOwn(SHAPES, name))
  if (unknown !== undefined) {
    throw new Error(
      `"${unknown}" is not a shape. The shapes are ${Object.keys(SHAPES).join(', ')}.`,
    )
  }
  return {
    shapes: shapes as ShapeName[],
    roundTripsMs: values['round-trip']?.map(Number) ?? plan.roundTripsMs,
    repeats: Number(values.repeats ?? plan.repeats),
  }
}

const print = (line: string) => process.stdout.write(`${line}\n`)
