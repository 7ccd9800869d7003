import type { Config, LogLevel } from '../config/settings.ts'
import { type Log, type LogFields, silentLog } from '../platform/log.ts'
import { sanitizeText, toSentence } from '../platform/text.ts'
import type { CliContext } from './context.ts'
import { wrapLines } from './width.ts'

const ORDER: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent']

/** Whether a log of level `configured` has the events of `level`. */
export const isLogged = (level: LogLevel, configured: LogLevel): boolean =>
  ORDER.indexOf(level) >= ORDER.indexOf(configured)

/** The words before an event, the same as before the messages of commands. */
const PREFIXES = { debug: 'debug', info: 'note', warn: 'warning', error: 'error' } as const

/**
 * Returns a log that writes events to stderr, from the configured level up: as sentences, wrapped to
 * the width of the terminal, or as JSON. `width` returns null if the output is not a terminal.
 */
export function stderrLog(
  { clock, stderr }: Pick<CliContext, 'clock'> & { stderr: { write(text: string): unknown } },
  config: Pick<Config, 'log' | 'logFormat'>,
  width: () => number | null = () => null,
): Log {
  if (config.log === 'silent') return silentLog
  const at = (level: keyof Log) => (message: string, fields?: LogFields) => {
    if (!isLogged(level, config.log)) return
    const line =
      config.logFormat === 'json'
        ? JSON.stringify({ time: clock.now(), level, message, ...fields })
        : wrapLines(`${PREFIXES[level]}: ${toSentence(describeEvent(message, fields))}`, width())
    stderr.write(`${line}\n`)
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** Longer than any message of ev, and enough of a stack. */
export const TEXT_MAX = 2_000

/**
 * Describes an event for people: `results cannot be written: disk full (job ID: job_4kq2)`.
 * Untrusted text cannot forge a line or send control sequences. Stacks are left out.
 */
export function describeEvent(message: string, fields: LogFields = {}): string {
  const { why, error, stack: _, ...rest } = fields
  const cause = why ?? error
  const facts = Object.entries(rest)
    .filter(([, value]) => value !== undefined && value !== null && value !== '')
    .map(([name, value]) => `${toWords(name)}: ${value}`)
  const [, text = '', end = ''] = /^(.*?)(\.?)$/s.exec(
    cause == null ? message : `${message}: ${cause}`,
  ) as RegExpExecArray
  return sanitizeText(
    `${text}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}${end}`,
    TEXT_MAX,
  )
}

/** `jobId` becomes `job ID`, `retryAfterMs` becomes `retry after ms`. */
const toWords = (name: string) =>
  name
    .replace(/[_-]/g, ' ')
    .replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
    .replace(/\b(id|url|ip)\b/g, name => name.toUpperCase())
