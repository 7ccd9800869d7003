import {
  type AddressClassifier,
  type ClassifierOptions,
  type CustomKeys,
  createClassifier,
} from './address/classifier.ts'
import type { CustomListName } from './address/custom-list-entry.ts'
import { keysInFile } from './address/custom-list-file.ts'
import { checkLists } from './address/name-list.ts'
import {
  type CustomOperator,
  createMxOperatorReader,
  type MxOperatorReader,
} from './dns/operator-table.ts'

/** The custom list files, and the configured operators. */
export type ListFiles = {
  readonly files: { readonly [list in CustomListName]?: string | null }
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

/** Reads and validates the lists. Throws EvError if an entry is invalid or a built-in list is missing. */
export function openLists(sources: ListFiles): ListLoader {
  checkLists()
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
  classifier: createClassifier(entries, keysOf(files)),
  operators: createMxOperatorReader(operators),
})

/** The keys of each list that has a file. */
const keysOf = (files: ListFiles['files']): CustomKeys =>
  Object.fromEntries(
    Object.entries(files).flatMap(([list, file]) =>
      file === null ? [] : [[list, keysInFile(list as CustomListName, file)]],
    ),
  )
