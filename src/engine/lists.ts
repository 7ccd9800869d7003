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

/** The custom list files, and the configured operators. */
export type ListFiles = {
  readonly files: ClassifierFiles
  /** Entries in addition to those of the files. */
  readonly entries: ClassifierOptions
  readonly operators: Readonly<Record<string, CustomOperator>>
}

/** Classifies addresses and operators offline; a reload replaces both while the engine runs. */
export type ListLoader = {
  readonly classifier: AddressClassifier
  readonly operators: MxOperatorReader
  /**
   * Reloads all lists, from `sources` if given. Throws EvError if an entry is invalid, and then
   * keeps the current lists.
   */
  reload(sources?: ListFiles): void
}

/** Reads and validates the lists. Throws EvError if an entry is invalid. */
export function openLists(sources: ListFiles): ListLoader {
  let current = { sources, ...readLists(sources) }
  return {
    get classifier() {
      return current.classifier
    },
    get operators() {
      return current.operators
    },
    reload(next = current.sources) {
      current = { sources: next, ...readLists(next) }
    },
  }
}

const readLists = ({ files, entries, operators }: ListFiles) => ({
  classifier: createClassifier(entries, files),
  operators: createMxOperatorReader(operators),
})
