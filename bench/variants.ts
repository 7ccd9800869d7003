import { median } from './engine/figures.ts'

/** A variant of the work; `work` returns how often it was done. */
export type Variant = { readonly name: string; readonly work: () => number }

/** Median speed of the runs of a variant. */
export type Speed = { readonly name: string; readonly perSecond: number }

const RUNS = 9
/**
 * Duration of a run, long enough that the clock resolution and a single garbage collection do not
 * matter.
 */
const RUN_MS = 150

/** Runs the variants alternately, so that other load on the machine affects all of them alike. */
export function measureVariants(variants: readonly Variant[]): Speed[] {
  for (const variant of variants) measureRun(variant) // Warm-up: lets the compiler optimize.
  const runSpeeds = variants.map(() => [] as number[])
  for (let n = 0; n < RUNS; n += 1) {
    for (const [index, variant] of variants.entries()) runSpeeds[index]?.push(measureRun(variant))
  }
  return variants.map(({ name }, index) => ({ name, perSecond: median(runSpeeds[index] ?? []) }))
}

function measureRun({ work }: Variant): number {
  const startedAt = getCpuMs()
  let done = 0
  let tookMs = 0
  while (tookMs < RUN_MS) {
    done += work()
    tookMs = getCpuMs() - startedAt
  }
  return (done / tookMs) * 1_000
}

/** Returns the CPU time of this process, which excludes other load on the machine. */
function getCpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Formats table rows with the speed of each variant and its ratio to the last one. */
export function rows(speeds: readonly Speed[]): string[] {
  const baseline = speeds.at(-1)?.perSecond ?? 1
  return speeds.map(({ name, perSecond }) => {
    const speed = Math.round(perSecond).toLocaleString('en')
    return `| ${name} | ${speed} | ${(perSecond / baseline).toFixed(2)}× |`
  })
}
