import { parseArgs } from 'node:util'
import { type CProbe, compileCProbe } from './c-probe.ts'
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
  program: 'engine' | 'bulk',
  args: readonly string[],
): Promise<void> {
  const plan = readPlan(args)
  const runsText = plan.repeats === 1 ? 'one run' : `medians of ${plan.repeats} runs`
  const cProbe = compileCProbe()
  if (cProbe === null) print(NO_COMPILER)
  print(`Machine: ${machine()}; ${runsText}.\n\n${head()}`)
  const programs: Program[] = ['bare', ...(cProbe === null ? [] : (['c'] as const)), program]
  const faults: string[] = []
  let isBusy = false
  try {
    for (const name of plan.shapes) {
      for (const roundTripMs of plan.roundTripsMs) {
        const runs = await measurePrograms(programs, name, { ...plan, roundTripMs, cProbe })
        for (const one of programs) {
          print(row(SHAPES[name], roundTripMs, runs[one], runs.bare, runs.c))
          isBusy ||= isSimulatorBusy(runs[one])
          faults.push(...runs[one].flatMap(run => faultsOf(run, SHAPES[name])))
        }
      }
    }
  } finally {
    cProbe?.close()
  }
  if (isBusy) print(BUSY_NOTE)
  print(faults.length === 0 ? '\nAll checks passed.' : `\nFailed checks:\n- ${faults.join('\n- ')}`)
  if (faults.length > 0) process.exitCode = 1
}

const NO_COMPILER = 'There is no C compiler, so the bare probe in C is left out.\n'
const BUSY_NOTE =
  '\n* The simulator used at least 90 % of a core, so it limited the speed and not the program: ' +
  'a faster program would have the same speed. Compare the CPU.'

type MeasureOptions = {
  readonly roundTripMs: number
  readonly repeats: number
  readonly cProbe: CProbe | null
}

/** Runs the programs alternately, so that other load on the machine affects all of them alike. */
export async function measurePrograms(
  programs: readonly Program[],
  name: ShapeName,
  { roundTripMs, repeats, cProbe }: MeasureOptions,
): Promise<Readonly<Record<Program, readonly Measured[]>>> {
  const runs: Record<Program, Measured[]> = { bare: [], c: [], engine: [], bulk: [] }
  const testBed = await TestBed.open(SHAPES[name], roundTripMs, cProbe)
  try {
    // Warm-up, so that the first run does not pay for compiling the simulator.
    await testBed.measure('bare')
    for (let repeat = 0; repeat < repeats; repeat += 1) {
      for (const program of programs) runs[program].push(await testBed.measure(program))
    }
  } finally {
    await testBed.close()
  }
  return runs
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
