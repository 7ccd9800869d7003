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
