import type { Log, LogFields } from '../../src/platform/log.ts'

export type LogLine = {
  readonly level: string
  readonly message: string
  readonly fields: LogFields
}

/** Creates a log that records its lines. */
export function recordingLog(): { readonly log: Log; readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}) =>
      void lines.push({ level, message, fields })
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { log, lines }
}
