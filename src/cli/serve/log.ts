import { styleText } from 'node:util'
import { type Level, pino } from 'pino'
import sonic from 'sonic-boom'
import type { Config } from '../../config/settings.ts'
import { formatNumber } from '../../platform/format.ts'
import { type Log, type LogFields, silentLog } from '../../platform/log.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext, CliOutput } from '../context.ts'
import { describeEvent, isLogged, TEXT_MAX } from '../log.ts'
import { timeOfDay } from '../print.ts'
import { terminalWidth, wrapLines } from '../width.ts'

export type ServeLog = Log & {
  /** Whether lines are formatted for people. */
  readonly isPretty: boolean
  /** Writes buffered lines before the process exits. */
  flush(): void
}

/**
 * Buffer for a slow reader, in bytes. Beyond it lines are dropped, so that the service continues.
 */
const BUFFER_MAX = 4 * 1024 * 1024

/**
 * Attempts, 100 ms apart, to write the last lines to a reader that reads nothing: the process exits
 * two seconds later without them.
 */
const LAST_WRITES_MAX = 20

/** Returns the log of the service, which writes one line per event to stderr. */
export function serveLog(
  context: Pick<CliContext, 'stderr' | 'clock' | 'env'>,
  config: Pick<Config, 'log' | 'logFormat'>,
): ServeLog {
  const { stderr } = context
  const isPretty = config.logFormat === null ? stderr.isTTY === true : config.logFormat === 'pretty'
  if (config.log === 'silent') return { ...silentLog, isPretty, flush: () => {} }
  const { write, flush } = openDestination(stderr)
  const log = isPretty ? textLog(context, config, write) : jsonLog(context, config, write)
  return { ...log, isPretty, flush }
}

type Write = (text: string) => void

function jsonLog(
  { clock }: Pick<CliContext, 'clock'>,
  { log }: Pick<Config, 'log'>,
  write: Write,
): Log {
  const options = {
    level: log,
    base: null,
    messageKey: 'message',
    timestamp: () => `,"time":${clock.now()}`,
    formatters: { level: (level: string) => ({ level }) },
  }
  const logger = pino(options, { write })
  const at = (level: Level) => (message: string, fields?: LogFields) => {
    if (!logger.isLevelEnabled(level)) return
    logger[level](cleaned(fields ?? {}), sanitizeText(message, TEXT_MAX))
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** Sanitizes untrusted text, which must not forge log lines or send control sequences. */
function cleaned(fields: LogFields): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' ? sanitizeText(value, TEXT_MAX) : value,
    ]),
  )
}

/** A log for people: short lines with the local time, and of requests only those of clients. */
function textLog(
  context: Pick<CliContext, 'stderr' | 'clock' | 'env'>,
  config: Pick<Config, 'log'>,
  write: Write,
): Log {
  const { stderr, clock } = context
  const at =
    (level: keyof Log) =>
    (message: string, fields: LogFields = {}) => {
      if (!isLogged(level, config.log)) return
      if (message === 'request' && config.log !== 'debug' && isSecondary(fields)) return
      const text = message === 'request' ? describeRequest(fields) : describeEvent(message, fields)
      const mark = MARKS[level]
      const prefix =
        mark === null ? '' : `${styleText(mark.color, mark.word, { stream: stderr })}: `
      const line = `${timeOfDay(clock.now())} ${prefix}${text}`
      const stack = typeof fields.stack === 'string' ? stackLines(fields.stack) : []
      write(`${[wrapLines(line, terminalWidth(context, stderr)), ...stack].join('\n')}\n`)
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

const MARKS = {
  debug: null,
  info: null,
  warn: { color: 'yellow', word: 'warning' },
  error: { color: 'red', word: 'error' },
} as const

/** Assets, refreshes of an open page, and requests that a page of the dashboard makes in process. */
const isSecondary = ({ route, poll, sessionId, status }: LogFields): boolean =>
  sessionId !== undefined ||
  (Number(status) < 400 && (poll === true || String(route).startsWith('/assets/')))

/** `200 GET /v1/credits, 3 ms`; the route is the template of a path, which contains no secrets. */
const describeRequest = ({ method, route, status, ms }: LogFields): string =>
  `${status} ${method} ${route === 'none' ? '(unknown path)' : route}, ${formatNumber(Number(ms))} ms`

const stackLines = (stack: string) =>
  stack
    .split('\n')
    .slice(1)
    .map(line => `    ${sanitizeText(line, TEXT_MAX)}`)

type Destination = { readonly write: Write; readonly flush: () => void }

function openDestination(stderr: CliOutput): Destination {
  // A stream in memory, as in tests, needs no buffer.
  if (stderr.fd === undefined) return { write: text => void stderr.write(text), flush: () => {} }
  let isExiting = false
  let lastWrites = 0
  const file = new sonic.SonicBoom({
    fd: stderr.fd,
    sync: false,
    maxLength: BUFFER_MAX,
    retryEAGAIN: () => !isExiting || ++lastWrites < LAST_WRITES_MAX,
  })
  // The service continues when the reader of the log is gone or the disk is full.
  file.on('error', () => {})
  const flush = () => {
    isExiting = true
    try {
      file.flushSync()
    } catch {
      // As above.
    }
  }
  return { write: text => void file.write(text), flush }
}
