import { isoTime } from '../../engine/verdict/present-result.ts'

/** A time as people in its place write it, to the minute: 2026-11-21 17:46. */
export function timeText(at: number): string {
  const time = new Date(at)
  const two = (part: number) => String(part).padStart(2, '0')
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}`
}

/** A time for programs, in UTC. */
export const isoTimeOrNull = (at: number | null) => (at === null ? null : isoTime(at))
