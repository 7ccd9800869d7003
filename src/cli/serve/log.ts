import { type DestinationStream, type Level, pino } from 'pino'
import pretty, { type PrettyOptions, prettyFactory } from 'pino-pretty'
import type { Config } from '../../config/settings.ts'
import { type Log, type LogFields, silentLog } from '../../platform/log.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext, CliOutput } from '../context.ts'

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

/** The log of the service on stderr, a line for each event. */
export function serveLog(
  context: Pick<CliContext, 'stderr' | 'clock'>,
  config: Pick<Config, 'log' | 'logFormat'>,
): ServeLog {
  const { stderr, clock } = context
  const isTTY = stderr.isTTY === true
  const isPretty = config.logFormat === null ? isTTY : config.logFormat === 'pretty'
  if (config.log === 'silent') return { ...silentLog, isPretty, flush: () => {} }
  const options = {
    level: config.log,
    base: null,
    messageKey: 'message',
    timestamp: () => `,"time":${clock.now()}`,
    formatters: { level: (level: string) => ({ level }) },
  }
  const format = { messageKey: 'message', colorize: isTTY, translateTime: true }
  const { to, flush } = destinationOf(stderr, isPretty ? format : null)
  const logger = pino(options, to)
  const at =
    (level: Level) =>
    (message: string, fields: LogFields = {}) => {
      if (!logger.isLevelEnabled(level)) return
      logger[level](cleaned(fields), sanitizeText(message, TEXT_MAX))
    }
  const levels = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { ...levels, isPretty, flush }
}

type Destination = { readonly to: DestinationStream; readonly flush: () => void }

/** `format`: how lines are made pretty; null: they are JSON. */
function destinationOf(stderr: CliOutput, format: PrettyOptions | null): Destination {
  if (stderr.fd === undefined) {
    // A stream in memory takes each line at once.
    const line = format === null ? String : prettyFactory(format)
    return { to: { write: json => void stderr.write(line(json)) }, flush: () => {} }
  }
  const file = pino.destination({ fd: stderr.fd, sync: false, maxLength: WAITING_MAX })
  file.on('error', () => {}) // Who read it has left; that is no reason to stop.
  const to = format === null ? file : pretty({ ...format, destination: file })
  return { to, flush: () => flush(file) }
}

/** Foreign text must not look like lines of ours, or tell the terminal anything. */
function cleaned(fields: LogFields): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' ? sanitizeText(value, TEXT_MAX) : value,
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
