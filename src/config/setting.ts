import type { Settings } from './settings.ts'

/** One setting: its names at the three doors, what it means, and how its text is read. */
export type Setting<K extends keyof Settings = keyof Settings> = {
  readonly key: K
  readonly flag: string
  /** Placeholder of the flag's value; null for a switch. */
  readonly value: string | null
  readonly environment: string
  readonly help: string
  readonly read: (text: string) => Settings[K]
  readonly fallback: (environment: Environment) => Settings[K]
  /** Neither taken as a flag, as lists of processes show flags, nor ever shown. */
  readonly isSecret: boolean
  /** A URL that may hold a password: with one it is not taken as a flag, and one that is faulty is never repeated. */
  readonly mayHoldPassword: boolean
}

export type Environment = Readonly<Record<string, string | undefined>>

/** A setting by its key and its flag; the other names follow from that. */
export function setting<K extends keyof Settings>(
  key: K,
  flag: string,
  help: string,
  read: Setting<K>['read'],
  fallback: Settings[K] | Setting<K>['fallback'],
): Setting<K> {
  const [name, value = null] = flag.split(' ') as [string, string?]
  return {
    key,
    flag: name,
    value,
    environment: `EV_${name.slice(2).replaceAll('-', '_').toUpperCase()}`,
    help,
    read,
    fallback: typeof fallback === 'function' ? fallback : () => fallback,
    isSecret: false,
    mayHoldPassword: false,
  }
}

/** One that only the environment and the config file may hold. */
export function secretSetting<K extends keyof Settings>(
  ...given: Parameters<typeof setting<K>>
): Setting<K> {
  return { ...setting<K>(...given), isSecret: true }
}

/** One that flags may hold as long as there is no password in it. */
export function passwordSetting<K extends keyof Settings>(
  ...given: Parameters<typeof setting<K>>
): Setting<K> {
  return { ...setting<K>(...given), mayHoldPassword: true }
}
