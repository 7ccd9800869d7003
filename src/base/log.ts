/** Where ev reports what happens inside, as a door to the world. Fields never hold secrets. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }
