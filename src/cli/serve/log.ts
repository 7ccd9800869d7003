import { type DestinationStream, type Level, pino } from 'pino'
import pretty, { type PrettyOptions, prettyFactory } from 'pino-pretty'
import type { Config } from '../../config/settings.ts'
import { type Log, type LogFields, silentLog } from '../../platform/log.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext, CliOutput } from '../context.ts'

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
/** Longer than any message of ev, and enough of a stack. */
const TEXT_MAX = 2_000

/** Returns the log of the service, which writes one line per event to stderr. */
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
  const format = { messageKey: 'message', colorize: isTTY, translateTime: true, singleLine: true }
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

/** Opens the destination of log lines. They are JSON if `format` is null. */
function destinationOf(stderr: CliOutput, format: PrettyOptions | null): Destination {
  if (stderr.fd === undefined) {
    // A stream in memory, as in tests, needs no buffer.
    const line = format === null ? String : prettyFactory(format)
    return { to: { write: json => void stderr.write(line(json)) }, flush: () => {} }
  }
  const file = pino.destination({ fd: stderr.fd, sync: false, maxLength: BUFFER_MAX })
  file.on('error', () => {}) // The service continues when the reader of the log is gone.
  const to = format === null ? file : pretty({ ...format, destination: file })
  return { to, flush: () => flush(file) }
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

function flush(destination: ReturnType<typeof pino.destination>): void {
  try {
    destination.flushSync()
  } catch {
    // The file was never opened, or its reader is gone.
  }
}
