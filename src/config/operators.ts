import { ENGINE } from './engine-settings.ts'
import { readByName, readFields } from './fields.ts'
import { Expected, list, oneOf, text } from './values.ts'

/** What the config file says of one mail operator; null: as it is without. */
export type OperatorConfig = {
  /** Ends of its exchangers' names; only needed where ev does not know the operator. */
  readonly hosts: readonly string[]
  /** Name for people. */
  readonly title: string | null
  /** What a 2xx to RCPT is worth there. */
  readonly truth: 'tells' | 'accepts-all' | 'tenant' | 'gateway' | 'parked' | null
  readonly sessionsPerOperator: number | null
  readonly recipientsPerSession: number | null
  readonly sessionsPerSecond: number | null
  /** Names of the egresses that may ask it. */
  readonly egresses: readonly string[] | null
}

const NOTHING_SAID: OperatorConfig = {
  hosts: [],
  title: null,
  truth: null,
  sessionsPerOperator: null,
  recipientsPerSession: null,
  sessionsPerSecond: null,
  egresses: null,
}

/** The operators of the config file. Throws Expected. */
export function readOperators(
  given: unknown,
  egressNames: readonly string[],
): Readonly<Record<string, OperatorConfig>> {
  const { sessionsPerOperator, recipientsPerSession, sessionsPerSecond } = ENGINE
  const readers = {
    hosts: (text: string) => list(text).map(hostSuffix),
    title: text,
    truth: oneOf('tells', 'accepts-all', 'tenant', 'gateway', 'parked'),
    sessionsPerOperator: sessionsPerOperator.read,
    recipientsPerSession: recipientsPerSession.read,
    sessionsPerSecond: sessionsPerSecond.read,
    egresses: (text: string) => list(text).map(oneOf(...egressNames)),
  }
  return readByName(given, said => ({
    ...NOTHING_SAID,
    ...readFields<OperatorConfig>(said, readers),
  }))
}

function hostSuffix(given: string): string {
  const suffix = given.replace(/^\*?\./, '').toLowerCase()
  if (!/^([a-z0-9_]([a-z0-9_-]*[a-z0-9])?\.)+[a-z0-9-]+$/.test(suffix)) {
    throw new Expected('ends of host names such as mx.example.com')
  }
  return suffix
}
