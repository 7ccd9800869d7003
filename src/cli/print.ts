import { isoTime } from '../platform/format.ts'
import type { CliContext } from './context.ts'
import { terminalWidth, wrapLines } from './width.ts'

/**
 * Prints a sentence for people to stderr. On a terminal, it is wrapped at spaces: the terminal
 * would wrap it inside words.
 */
export function printMessage(
  context: Pick<CliContext, 'env' | 'stderr'>,
  level: 'error' | 'warning' | 'note',
  sentence: string,
): void {
  const width = terminalWidth(context, context.stderr)
  context.stderr.write(`${wrapLines(`${level}: ${sentence}`, width)}\n`)
}

/** Prints sentences for people to stdout, wrapped in the same way. */
export function printText(context: Pick<CliContext, 'env' | 'stdout'>, text: string): void {
  const width = terminalWidth(context, context.stdout)
  context.stdout.write(`${wrapLines(text.replace(/\n$/, ''), width)}\n`)
}

/** Prints a value as JSON to stdout. */
export function printJson({ stdout }: Pick<CliContext, 'stdout'>, value: unknown): void {
  stdout.write(`${JSON.stringify(value, null, 2)}\n`)
}

/** Formats a time in the local time zone, to the minute: `2026-11-21 17:46 UTC+1`. */
export function timeText(at: number): string {
  const time = new Date(at)
  const day = `${time.getFullYear()}-${twoDigits(time.getMonth() + 1)}-${twoDigits(time.getDate())}`
  return `${day} ${timeOfDay(at).slice(0, 5)} ${timeZone(at)}`
}

/** Formats the local time of day, to the second: `17:46:09`. */
export function timeOfDay(at: number): string {
  const time = new Date(at)
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map(twoDigits).join(':')
}

const twoDigits = (part: number) => String(part).padStart(2, '0')

/** Formats the offset of the local time zone: `UTC`, `UTC+1`, `UTC-3:30`. */
export function timeZone(at: number): string {
  const minutes = -new Date(at).getTimezoneOffset()
  if (minutes === 0) return 'UTC'
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60]
  return `UTC${minutes < 0 ? '-' : '+'}${hours}${rest === 0 ? '' : `:${twoDigits(rest)}`}`
}

/** Formats a time as ISO 8601 in UTC. */
export const isoTimeOrNull = (at: number | null) => (at === null ? null : isoTime(at))
