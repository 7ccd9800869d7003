import { parseAllDocuments } from 'yaml'
import { SETTINGS } from '../../src/config/settings.ts'
import { readDoc } from './markdown.ts'

/** Returns the documents of a YAML file of the project. Throws if one is not valid YAML 1.2. */
export function readYaml<T>(path: string): T[] {
  const documents = parseAllDocuments(readDoc(path), { merge: true, uniqueKeys: true })
  return documents.map(document => {
    for (const problem of [...document.errors, ...document.warnings]) throw problem
    return document.toJS()
  })
}

/** Returns the variables that are not settings of ev. */
export function unknownSettings(names: readonly string[]): string[] {
  const known = new Set(SETTINGS.map(({ environment }) => environment))
  return names.filter(name => !known.has(name))
}

/** Returns a duration such as `20s` in milliseconds. */
export const durationMs = (text: string): number => Number.parseInt(text, 10) * 1_000

/** Variables of a file with one NAME=value in a line, as for Docker and systemd. */
export const readVariables = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  )
