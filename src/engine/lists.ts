import {
  type AddressClassifier,
  type ClassifierFiles,
  type ClassifierOptions,
  createClassifier,
} from './address/classifier.ts'
import {
  type CustomOperator,
  createMxOperatorReader,
  type MxOperatorReader,
} from './dns/operator-table.ts'

/** Where lists of one's own stand, and what is said of operators. */
export type ListFiles = {
  readonly files: ClassifierFiles
  /** Entries beside those of the files. */
  readonly entries: ClassifierOptions
  readonly operators: Readonly<Record<string, CustomOperator>>
}

/** What is known of domains, mailboxes and operators before anyone is asked; may change while the engine works. */
export type ListLoader = {
  readonly classifier: AddressClassifier
  readonly operators: MxOperatorReader
  /** Reads all of it again, by another plan if one is given. Throws EvError where something is bad; then all stays as it was. */
  reload(plan?: ListFiles): void
}

/** Reads and checks the lists. Throws EvError where something is bad. */
export function openLists(plan: ListFiles): ListLoader {
  let known = { plan, ...readLists(plan) }
  return {
    get classifier() {
      return known.classifier
    },
    get operators() {
      return known.operators
    },
    reload(fresh = known.plan) {
      known = { plan: fresh, ...readLists(fresh) }
    },
  }
}

const readLists = ({ files, entries, operators }: ListFiles) => ({
  classifier: createClassifier(entries, files),
  operators: createMxOperatorReader(operators),
})
