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

/** Formats a time in the local time zone, to the minute: 2026-11-21 17:46. */
export function timeText(at: number): string {
  const time = new Date(at)
  const two = (part: number) => String(part).padStart(2, '0')
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}`
}

/** Formats a time as ISO 8601 in UTC. */
export const isoTimeOrNull = (at: number | null) => (at === null ? null : isoTime(at))
