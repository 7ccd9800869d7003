import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { toDomains } from './names.mjs'

const require = createRequire(import.meta.url)
const MODULES = join(import.meta.dirname, '../../node_modules')

export const packageFolder = name => join(MODULES, name)
export const readText = (name, file) => readFileSync(join(packageFolder(name), file), 'utf8')
export const readJson = (name, file) => JSON.parse(readText(name, file))

/**
 * Packages that list disposable domains.
 * - `community`: disposable-email-domains, where each entry needs a screenshot of the service.
 * - `harvest`: fakefilter, which asks the services themselves.
 * - `mailchecker`, `burner`: kept by hand, with bulk imports.
 * - `archive`: ivolo's list and its successor. It takes over other lists and removes nothing.
 * - `aggregate`, `aggregateLater`: two states of disposable/disposable, which asks the services
 *   and takes over all of the above.
 */
const PACKAGES = {
  community: {
    name: 'disposable-email-domains-js',
    read: name => require(name).disposableEmailBlocklist(),
  },
  harvest: { name: 'fakefilter', read: name => readText(name, 'txt/data.txt').split('\n') },
  mailchecker: { name: 'mailchecker', read: name => [...require(name).blacklist()] },
  burner: {
    name: 'burner-email-providers',
    read: name => readText(name, 'emails.txt').split('\n'),
  },
  archive: { name: 'disposable-domains', read: name => require(name) },
  aggregate: { name: '@dahoom/disposable-email', read: name => readJson(name, 'domains.json') },
  aggregateLater: {
    name: 'disposable-email-detector',
    read: name => Object.values(readJson(name, 'index.json')).flat(),
  },
}

export const packageNames = () => Object.values(PACKAGES).map(({ name }) => name)

/** A Set of domains for each key of PACKAGES. `heldOut` names keys that are read as empty. */
export const readSources = (heldOut = []) =>
  Object.fromEntries(
    Object.entries(PACKAGES).map(([key, { name, read }]) => [
      key,
      new Set(heldOut.includes(key) ? [] : toDomains(read(name))),
    ]),
  )

export const namedAnywhere = sources => new Set(Object.values(sources).flatMap(names => [...names]))
