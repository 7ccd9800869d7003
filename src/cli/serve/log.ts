import { isatty } from 'node:tty'
import { type Level, pino } from 'pino'
import pretty from 'pino-pretty'
import { systemClock } from '../../base/clock.ts'
import { type Log, type LogFields, silentLog } from '../../base/log.ts'
import { cleanText } from '../../base/text.ts'
import type { Config } from '../../config/settings.ts'

export type ServeLog = Log & {
  /** Whether people read it as it comes. */
  readonly isPretty: boolean
  /** Writes what is not written yet, before the process ends. */
  flush(): void
}

/** What waits to be written while nobody takes it; beyond that lines are dropped, as the service must go on. */
const WAITING_MAX = 4 * 1024 * 1024
/** Longer than any sentence of ours, and enough of a stack. */
const TEXT_MAX = 2_000

const STDERR = 2

/** The log of the service on stderr, a line for each event. */
export function serveLog(config: Pick<Config, 'log' | 'logFormat'>): ServeLog {
  const isPretty = config.logFormat === null ? isatty(STDERR) : config.logFormat === 'pretty'
  if (config.log === 'silent') return { ...silentLog, isPretty, flush: () => {} }
  const destination = pino.destination({ fd: STDERR, sync: false, maxLength: WAITING_MAX })
  destination.on('error', () => {}) // Who read it has left; that is no reason to stop.
  const options = {
    level: config.log,
    base: null,
    messageKey: 'message',
    timestamp: () => `,"time":${systemClock.now()}`,
    formatters: { level: (level: string) => ({ level }) },
  }
  const to = isPretty
    ? pretty({ destination, messageKey: 'message', colorize: isatty(STDERR), translateTime: true })
    : destination
  const logger = pino(options, to)
  const at =
    (level: Level) =>
    (message: string, fields: LogFields = {}) => {
      if (!logger.isLevelEnabled(level)) return
      logger[level](cleaned(fields), cleanText(message, TEXT_MAX))
    }
  const levels = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { ...levels, isPretty, flush: () => flush(destination) }
}

/** Foreign text must not look like lines of ours, or tell the terminal anything. */
function cleaned(fields: LogFields): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' ? cleanText(value, TEXT_MAX) : value,
    ]),
  )
}

function flush(destination: ReturnType<typeof pino.destination>): void {
  try {
    destination.flushSync()
  } catch {
    // It was never opened, or nobody reads it any more.
  }
}
