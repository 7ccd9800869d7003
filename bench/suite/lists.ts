import { compileCProbe } from '../engine/c-probe.ts'
import { faultsOf } from '../engine/check.ts'
import { measurePrograms } from '../engine/compare.ts'
import { isSimulatorBusy, median, PROGRAM_NAMES } from '../engine/figures.ts'
import type { Measured } from '../engine/measure.ts'
import type { Program } from '../engine/run-options.ts'
import { SHAPES, type ShapeName } from '../engine/scenario.ts'
import type { PartResult } from './part.ts'

const LISTS: readonly ShapeName[] = ['1k-1k', '10k-10k', '10k-100', '10k-hoster']
const PROGRAMS = ['engine', 'bulk'] as const
const ROUND_TRIP_MS = 50
const REPEATS = 3

const HEADINGS = [
  ...['list', 'program', 'addresses/s', 'of the bare probe', 'of the one in C'],
  ...['CPU of the bare probe', 'of the one in C', 'peak memory', 'connections', 'DNS questions'],
]

/** Compares `verifyMany` and `ev bulk` with the bare probes. Throws if a run has a wrong result. */
export async function measureLists(): Promise<PartResult> {
  const cProbe = compileCProbe()
  const ratios: Record<string, number> = {}
  const lines = [HEADINGS, HEADINGS.map(() => '---')].map(toRow)
  const probes: Program[] = cProbe === null ? ['bare'] : ['bare', 'c']
  try {
    for (const shape of LISTS) {
      const options = { roundTripMs: ROUND_TRIP_MS, repeats: REPEATS, cProbe }
      const runs = await measurePrograms([...probes, ...PROGRAMS], shape, options)
      const faults = Object.values(runs)
        .flat()
        .flatMap(run => faultsOf(run, SHAPES[shape]))
      if (faults.length > 0) throw new Error(faults.join('\n'))
      for (const program of PROGRAMS) {
        const [ours, bare] = [runs[program], runs.bare]
        const ratio = (figure: Figure, others: readonly Measured[]) =>
          medianOf(figure, ours) / medianOf(figure, others)
        const name = `${PROGRAM_NAMES[program].replaceAll('`', '')}, ${SHAPES[shape].name}`
        ratios[`${name}: speed`] = ratio(speed, bare)
        ratios[`${name}: CPU`] = ratio(cpu, bare)
        lines.push(
          toRow([
            SHAPES[shape].name,
            PROGRAM_NAMES[program],
            `${count(medianOf(speed, ours))}${isSimulatorBusy(ours) ? ' *' : ''}`,
            ratio(speed, bare).toFixed(2),
            runs.c.length === 0 ? '' : ratio(speed, runs.c).toFixed(2),
            `${ratio(cpu, bare).toFixed(1)}×`,
            runs.c.length === 0 ? '' : `${ratio(cpu, runs.c).toFixed(0)}×`,
            `${count(medianOf(run => run.peakRssMiB, ours))} MiB`,
            count(medianOf(run => run.counters.total.connections, ours)),
            count(medianOf(run => run.counters.dns.total, ours)),
          ]),
        )
      }
    }
  } finally {
    cProbe?.close()
  }
  return { ratios, lines }
}

type Figure = (run: Measured) => number

const speed: Figure = ({ addresses, seconds }) => addresses / seconds
const cpu: Figure = ({ cpuMs }) => cpuMs
const medianOf = (figure: Figure, runs: readonly Measured[]) => median(runs.map(figure))
const count = (number: number) => Math.round(number).toLocaleString('en')
const toRow = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
