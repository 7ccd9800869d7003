import { isoTime } from '../../engine/verdict/present-result.ts'

/** Formats a time in the local time zone, to the minute: 2026-11-21 17:46. */
export function timeText(at: number): string {
  const time = new Date(at)
  const two = (part: number) => String(part).padStart(2, '0')
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}`
}

/** Formats a time as ISO 8601 in UTC. */
export const isoTimeOrNull = (at: number | null) => (at === null ? null : isoTime(at))
