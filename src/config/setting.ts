/** A setting: its flag, its environment variable, its help text and its parser. */
export type SettingSpec<T = unknown> = {
  readonly flag: string
  /** Placeholder of the flag's value, which also tells its unit or kind; null for a switch. */
  readonly value: string | null
  readonly environment: string
  readonly help: string
  readonly read: (text: string) => T
  readonly fallback: (environment: Environment) => T
  /** Never shown, and not accepted as a flag, as process lists show flags. */
  readonly isSecret: boolean
  /**
   * The value is a URL that may contain a password: with one it is not accepted as a flag, and an
   * invalid value is not repeated in errors.
   */
  readonly mayHoldPassword: boolean
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Types of the parsed values of a table of settings. */
export type SettingValues<Table> = {
  readonly [K in keyof Table]: Table[K] extends SettingSpec<infer T> ? T : never
}

/** Defines a setting by its flag. Its value is null if it is not set, unless it has a fallback. */
export function setting<T>(
  flag: string,
  help: string,
  read: (text: string) => T,
): SettingSpec<T | null>
export function setting<T, const F>(
  flag: string,
  help: string,
  read: (text: string) => T,
  fallback: F | ((environment: Environment) => F),
): SettingSpec<T | F>
export function setting<T>(
  flag: string,
  help: string,
  read: (text: string) => T,
  fallback: unknown = null,
): SettingSpec<unknown> {
  const [name, value = null] = flag.split(' ') as [string, string?]
  return {
    flag: name,
    value,
    environment: `EV_${name.slice(2).replaceAll('-', '_').toUpperCase()}`,
    help,
    read,
    fallback: typeof fallback === 'function' ? (fallback as () => unknown) : () => fallback,
    isSecret: false,
    mayHoldPassword: false,
  }
}
