import {
  createTraits,
  type TraitFiles,
  type TraitOptions,
  type TraitReader,
} from '../address/traits.ts'
import { createOperators, type OperatorReader } from '../dns/operator.ts'
import type { OwnOperator } from '../dns/own-operators.ts'

/** Where lists of one's own stand, and what is said of operators. */
export type ListPlan = {
  readonly files: TraitFiles
  /** Entries beside those of the files. */
  readonly entries: TraitOptions
  readonly operators: Readonly<Record<string, OwnOperator>>
}

/** What is known of domains, mailboxes and operators before anyone is asked; may change while the engine works. */
export type Lists = {
  readonly traits: TraitReader
  readonly operators: OperatorReader
  /** Reads all of it again, by another plan if one is given. Throws EvError where something is bad; then all stays as it was. */
  reload(plan?: ListPlan): void
}

/** Reads and checks the lists. Throws EvError where something is bad. */
export function openLists(plan: ListPlan): Lists {
  let known = { plan, ...readLists(plan) }
  return {
    get traits() {
      return known.traits
    },
    get operators() {
      return known.operators
    },
    reload(fresh = known.plan) {
      known = { plan: fresh, ...readLists(fresh) }
    },
  }
}

const readLists = ({ files, entries, operators }: ListPlan) => ({
  traits: createTraits(entries, files),
  operators: createOperators(operators),
})
