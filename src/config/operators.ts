import { ENGINE } from './engine-settings.ts'
import { type FieldValues, readByName, readFields } from './fields.ts'
import { Expected, list, oneOf, text } from './values.ts'

const { sessionsPerOperator, recipientsPerSession, sessionsPerSecond } = ENGINE

const readersFor = (egressNames: readonly string[]) => ({
  /** Host name suffixes of its exchangers; required only if ev does not know the operator. */
  hosts: (text: string): readonly string[] => list(text).map(hostSuffix),
  /** Display name. */
  title: text,
  /** Meaning of a 2xx reply to RCPT. */
  truth: oneOf('tells', 'accepts-all', 'tenant', 'gateway', 'parked'),
  sessionsPerOperator: sessionsPerOperator.read,
  recipientsPerSession: recipientsPerSession.read,
  sessionsPerSecond: sessionsPerSecond.read,
  /** Names of the egresses that may connect to it. */
  egresses: (text: string): readonly string[] => list(text).map(oneOf(...egressNames)),
})

type OperatorFields = FieldValues<ReturnType<typeof readersFor>>

/** Settings of the config file for one operator. Null, or no hosts, keeps the built-in value. */
export type OperatorConfig = Pick<OperatorFields, 'hosts'> & {
  readonly [K in Exclude<keyof OperatorFields, 'hosts'>]: OperatorFields[K] | null
}

/** Reads the operators of the config file. Throws Expected. */
export function readOperators(
  input: unknown,
  egressNames: readonly string[],
): Readonly<Record<string, OperatorConfig>> {
  const readers = readersFor(egressNames)
  const defaults = Object.fromEntries(Object.keys(readers).map(key => [key, null]))
  return readByName(input, value => {
    const fields = { ...defaults, hosts: [], ...readFields(value, readers) }
    return fields as Partial<OperatorConfig> as OperatorConfig
  })
}

function hostSuffix(input: string): string {
  const suffix = input.replace(/^\*?\./, '').toLowerCase()
  if (!/^([a-z0-9_]([a-z0-9_-]*[a-z0-9])?\.)+[a-z0-9-]+$/.test(suffix)) {
    throw new Expected('host name suffixes such as mx.example.com')
  }
  return suffix
}
