import { DAY, SECOND } from '../platform/clock.ts'
import type { EgressConfig } from './egresses.ts'
import { ENGINE } from './engine-settings.ts'
import type { OperatorConfig } from './operators.ts'
import type { IpLimitsConfig, PlanConfig } from './plans.ts'
import { SERVE } from './serve-settings.ts'
import type { SettingSpec, SettingValues } from './setting.ts'
import { MEGABYTE } from './values.ts'

/** Everything that can be set, checked and frozen. Flags win over the environment, that over the file, that over the defaults. */
export type Config = Settings & {
  /** At least one; several only where the config file names them. */
  readonly egresses: readonly EgressConfig[]
  /** By the operator's name: what the config file says of it. */
  readonly operators: Readonly<Record<string, OperatorConfig>>
  /** By its name: what the config file says of a plan. */
  readonly plans: Readonly<Record<string, PlanConfig>>
  readonly ipLimits: IpLimitsConfig
}

/** What is one text at every door: a flag, a variable of the environment, a key of the file. */
export type Settings = SettingValues<typeof ENGINE & typeof SERVE>
export type ServeSettings = SettingValues<typeof SERVE>
export type LogLevel = Settings['log']

export type Setting = SettingSpec & { readonly key: keyof Settings }

const withKeys = (table: Readonly<Record<string, SettingSpec>>): readonly Setting[] =>
  Object.entries(table).map(([key, one]) => ({ ...one, key: key as keyof Settings }))

export const ENGINE_SETTINGS = withKeys(ENGINE)
export const SERVE_SETTINGS = withKeys(SERVE)
export const SETTINGS: readonly Setting[] = [...ENGINE_SETTINGS, ...SERVE_SETTINGS]

/** A value in the unit in which it is written: inside everything is milliseconds and bytes. */
export function inItsUnit<V>({ value: placeholder }: Setting, value: V): V | number {
  const unit = UNITS[placeholder ?? '']
  return unit === undefined || value === null ? value : Number(value) / unit
}

const UNITS: Readonly<Record<string, number>> = { S: SECOND, D: DAY, MB: MEGABYTE }

/** Whether it names a file or a folder. */
export const isPath = ({ value }: Setting) => value === 'F' || value === 'DIR'
