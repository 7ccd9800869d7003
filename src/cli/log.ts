import type { Config, LogLevel } from '../config/settings.ts'
import { type Log, type LogFields, silentLog } from '../platform/log.ts'
import type { CliContext } from './context.ts'

const ORDER: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent']

/** Returns a log that writes one line per event to stderr, from the configured level up. */
export function stderrLog(
  context: Pick<CliContext, 'clock'> & { readonly stderr: { write(text: string): unknown } },
  config: Pick<Config, 'log' | 'logFormat'>,
): Log {
  if (config.log === 'silent') return silentLog
  const json = config.logFormat === 'json'
  const at =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      if (ORDER.indexOf(level) < ORDER.indexOf(config.log)) return
      const line = json
        ? jsonLine(context.clock.now(), level, message, fields)
        : plainLine(level, message, fields)
      context.stderr.write(`${line}\n`)
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function jsonLine(time: number, level: LogLevel, message: string, fields: LogFields): string {
  return JSON.stringify({ time, level, message, ...fields })
}

function plainLine(level: LogLevel, message: string, fields: LogFields): string {
  const pairs = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    // JSON keeps untrusted values on one line and escapes control characters.
    .map(([key, value]) => ` ${key}=${JSON.stringify(value)}`)
  return `${level === 'warn' ? 'warning' : level}: ${message}${pairs.join('')}`
}
