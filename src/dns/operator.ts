import { getDomain } from 'tldts'
import { OPERATOR_ROWS } from './operators.ts'

/** Who runs the mail of a domain, known by the names of its exchangers. */
export type Operator = {
  /** Identifier: a name of the table such as `google`, else the registrable domain of the exchanger. */
  readonly name: string
  /** Name for people: `Google`. */
  readonly title: string
  /** What a 2xx to RCPT is worth: `tells` it knows its mailboxes; `accepts-all` it takes everything; `tenant` as each customer set it; `gateway` a filter in front of the customer's server. */
  readonly truth: 'tells' | 'accepts-all' | 'tenant' | 'gateway'
}

/** The operator of the exchanger `host`: by the longest suffix of the table, else by its registrable domain. */
export function operatorOf(host: string): Operator {
  const name = host.trim().replace(/\.$/, '').toLowerCase()
  for (let suffix = name; suffix !== ''; suffix = afterDot(suffix)) {
    const known = BY_SUFFIX.get(suffix)
    if (known) return known
  }
  const domain = getDomain(name, { allowPrivateDomains: false }) ?? name
  return { name: domain, title: domain, truth: 'tells' }
}

/** The operator of the table that has this name; null if there is none. */
export const operatorNamed = (name: string): Operator | null => BY_NAME.get(name) ?? null

/** Whether `name` stands in the table; else it is only the registrable domain of somebody's own server. */
export const isKnownOperator = (name: string) => BY_NAME.has(name)

/** All names of the table, in its order. */
export const operatorNames = (): readonly string[] => [...BY_NAME.keys()]

const afterDot = (name: string) => (name.includes('.') ? name.slice(name.indexOf('.') + 1) : '')

const BY_NAME = new Map<string, Operator>()
const BY_SUFFIX = new Map<string, Operator>()
for (const [name, title, truth, suffixes] of OPERATOR_ROWS) {
  const operator = Object.freeze({ name, title, truth })
  BY_NAME.set(name, operator)
  for (const suffix of suffixes.split(' ')) BY_SUFFIX.set(suffix, operator)
}
