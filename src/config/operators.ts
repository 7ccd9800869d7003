import { ENGINE } from './engine-settings.ts'
import { type FieldValues, readByName, readFields } from './fields.ts'
import { Expected, list, oneOf, text } from './values.ts'

const { sessionsPerOperator, recipientsPerSession, sessionsPerSecond } = ENGINE

const readersFor = (egressNames: readonly string[]) => ({
  /** Ends of its exchangers' names; only needed where ev does not know the operator. */
  hosts: (text: string): readonly string[] => list(text).map(hostSuffix),
  /** Name for people. */
  title: text,
  /** What a 2xx to RCPT is worth there. */
  truth: oneOf('tells', 'accepts-all', 'tenant', 'gateway', 'parked'),
  sessionsPerOperator: sessionsPerOperator.read,
  recipientsPerSession: recipientsPerSession.read,
  sessionsPerSecond: sessionsPerSecond.read,
  /** Names of the egresses that may ask it. */
  egresses: (text: string): readonly string[] => list(text).map(oneOf(...egressNames)),
})

type Said = FieldValues<ReturnType<typeof readersFor>>

/** What the config file says of one mail operator; null, and no hosts: as it is without. */
export type OperatorConfig = Pick<Said, 'hosts'> & {
  readonly [K in Exclude<keyof Said, 'hosts'>]: Said[K] | null
}

/** The operators of the config file. Throws Expected. */
export function readOperators(
  given: unknown,
  egressNames: readonly string[],
): Readonly<Record<string, OperatorConfig>> {
  const readers = readersFor(egressNames)
  const unsaid = Object.fromEntries(Object.keys(readers).map(key => [key, null]))
  return readByName(given, said => {
    const fields = { ...unsaid, hosts: [], ...readFields(said, readers) }
    return fields as Partial<OperatorConfig> as OperatorConfig
  })
}

function hostSuffix(given: string): string {
  const suffix = given.replace(/^\*?\./, '').toLowerCase()
  if (!/^([a-z0-9_]([a-z0-9_-]*[a-z0-9])?\.)+[a-z0-9-]+$/.test(suffix)) {
    throw new Expected('ends of host names such as mx.example.com')
  }
  return suffix
}
