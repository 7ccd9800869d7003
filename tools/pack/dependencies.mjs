// Puts packages with many files into the build, one file for each, and imports them from there.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { bundlePackages } from './bundle.mjs'
import { importsOf, nameOf, replaceSpecifiers } from './modules.mjs'

/**
 * Packages that the build contains: Kysely alone has 257 modules, and a module takes half a
 * millisecond to load. With what they depend on they are also more packages than all others, so the
 * product would install many files of which it uses few.
 */
const BUNDLED = [
  ...['@hono/node-server', '@hono/zod-openapi', 'hono', 'kysely', 'csv-parse', 'csv-stringify'],
  ...['openid-client', 'ora', 'pg-boss', 'prom-client', 'zod', 'age-encryption'],
  ...['@modelcontextprotocol/server', 'commander', 'dns-packet', 'lru-cache', 'p-limit'],
]

/** The folder of the bundles in the build. */
export const FOLDER = 'bundled'

/** Writes the bundles to `dist/bundled` and changes the imports of the compiled modules. */
export async function bundleDependencies(root, dist) {
  const modules = readdirSync(dist, { recursive: true })
    .filter(name => name.endsWith('.js') && !/^(vendor|dashboard\/browser)\//.test(name))
    .map(name => join(dist, name))
  const external = Object.keys(
    JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).dependencies,
  ).filter(name => !BUNDLED.includes(name))
  const names = importedNames(modules)
  const bundles = await bundlePackages(root, join(dist, FOLDER), names, external)
  for (const file of modules) {
    const code = readFileSync(file, 'utf8')
    const replaced = replaceSpecifiers(code, ({ specifier }) => {
      const bundle = bundles.get(specifier)
      return bundle === undefined ? null : relativePath(file, join(dist, FOLDER, bundle))
    })
    if (replaced !== code) writeFileSync(file, replaced)
  }
}

/** Returns the names that the modules import from the packages, by specifier. */
function importedNames(modules) {
  const names = new Map()
  for (const file of modules) {
    for (const { specifier, statement } of importsOf(readFileSync(file, 'utf8'))) {
      if (!BUNDLED.includes(nameOf(specifier))) continue
      const imported = names.get(specifier) ?? new Set()
      for (const name of namesOf(statement)) imported.add(name)
      names.set(specifier, imported)
    }
  }
  return names
}

/** The names in a statement such as `import ora, { spinners as x } from 'ora'`. */
function namesOf(statement) {
  const [, main, list] = /^import\s+(\w+)?,?\s*(?:\{([^}]*)\})?\s*from/.exec(statement) ?? []
  if (main === undefined && list === undefined) throw new Error(`Not supported: ${statement}`)
  const named = (list ?? '').split(',').map(name => name.trim().split(' as ')[0])
  return [...(main === undefined ? [] : ['default']), ...named.filter(name => name !== '')]
}

function relativePath(from, to) {
  const path = relative(dirname(from), to)
  return path.startsWith('.') ? path : `./${path}`
}
