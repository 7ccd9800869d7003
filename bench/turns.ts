import { median } from './engine/figures.ts'

/** A way of doing the same work, and how often it was done. */
export type Way = { readonly name: string; readonly work: () => number }

/** What one way achieved: the median of its turns. */
export type Speed = { readonly name: string; readonly perSecond: number }

const TURNS = 9
/** A turn goes on for that long, so that neither the clock nor a single collection of garbage decides. */
const TURN_MS = 150

/** All ways in turn, again and again, so that what else happens on the machine falls on each alike. */
export function inTurns(ways: readonly Way[]): Speed[] {
  for (const way of ways) turn(way) // Nobody is measured before the compiler has had a look.
  const seen = ways.map(() => [] as number[])
  for (let at = 0; at < TURNS; at += 1) {
    for (const [index, way] of ways.entries()) seen[index]?.push(turn(way))
  }
  return ways.map(({ name }, index) => ({ name, perSecond: median(seen[index] ?? []) }))
}

function turn({ work }: Way): number {
  const startedAt = busyMs()
  let done = 0
  let tookMs = 0
  while (tookMs < TURN_MS) {
    done += work()
    tookMs = busyMs() - startedAt
  }
  return (done / tookMs) * 1_000
}

/** Processor time: what else runs on the machine is not counted. */
function busyMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Rows of a table: the speed of each, and how many times as quick as the last one it is. */
export function rows(speeds: readonly Speed[]): string[] {
  const baseline = speeds.at(-1)?.perSecond ?? 1
  return speeds.map(({ name, perSecond }) => {
    const speed = Math.round(perSecond).toLocaleString('en')
    return `| ${name} | ${speed} | ${(perSecond / baseline).toFixed(2)}× |`
  })
}
