/** One setting: its names as a flag and in the environment, what it means, and how its text is read. */
export type SettingSpec<T = unknown> = {
  readonly flag: string
  /** Placeholder of the flag's value, which names its unit or kind too; null for a switch. */
  readonly value: string | null
  readonly environment: string
  readonly help: string
  readonly read: (text: string) => T
  readonly fallback: (environment: Environment) => T
  /** Neither taken as a flag, as lists of processes show flags, nor ever shown. */
  readonly isSecret: boolean
  /** A URL that may hold a password: with one it is not taken as a flag, and one that is faulty is never repeated. */
  readonly mayHoldPassword: boolean
}

export type Environment = Readonly<Record<string, string | undefined>>

/** What the settings of a table are when all are read. */
export type SettingValues<Table> = {
  readonly [K in keyof Table]: Table[K] extends SettingSpec<infer T> ? T : never
}

/** A setting by its flag, from which its other names follow; null when it is not given, unless it has a fallback. */
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
