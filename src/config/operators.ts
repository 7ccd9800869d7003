import { objectOf, readFields, textOf } from './fields.ts'
import { Expected, integer, list, number, oneOf, text, word } from './values.ts'

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
  if (given === undefined) return {}
  const all = Object.entries(objectOf(given)).map(([name, said]) => {
    try {
      return [word(name), readOperator(said, egressNames)] as const
    } catch (error) {
      if (!(error instanceof Expected)) throw error
      throw new Expected(`for "${name}" ${error.message}`)
    }
  })
  return Object.freeze(Object.fromEntries(all))
}

function readOperator(given: unknown, egressNames: readonly string[]): OperatorConfig {
  return Object.freeze({
    ...NOTHING_SAID,
    ...readFields<OperatorConfig>(given, {
      hosts: value => list(textOf(value)).map(hostSuffix),
      title: value => text(textOf(value)),
      truth: value =>
        oneOf<NonNullable<OperatorConfig['truth']>>([
          'tells',
          'accepts-all',
          'tenant',
          'gateway',
          'parked',
        ])(textOf(value)),
      sessionsPerOperator: value => integer(1, 1_000)(textOf(value)),
      recipientsPerSession: value => integer(1, 10_000)(textOf(value)),
      sessionsPerSecond: value => number(0.001, 100_000)(textOf(value)),
      egresses: value => list(textOf(value)).map(oneOf(egressNames)),
    }),
  })
}

function hostSuffix(given: string): string {
  const suffix = given.replace(/^\*?\./, '').toLowerCase()
  if (!/^([a-z0-9_]([a-z0-9_-]*[a-z0-9])?\.)+[a-z0-9-]+$/.test(suffix)) {
    throw new Expected('ends of host names such as mx.example.com')
  }
  return suffix
}
