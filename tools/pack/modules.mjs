// The imports of compiled modules: which modules a program loads, and where each import points.
import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import { init, parse } from 'es-module-lexer'

await init

/** Loads of packages that are not imports: a package in CommonJS, and a file of a package. */
const OTHER_LOADS =
  /createRequire\(import\.meta\.url\)\(['"]([^'"]+)['"]\)|import\.meta\.resolve\(['"]([^'".][^'"]*)['"]\)/g

/**
 * Returns the imports of a module: the specifier with its position, and the statement around it.
 */
export function importsOf(code) {
  const [imports] = parse(code)
  return imports
    .filter(({ n }) => n !== undefined)
    .map(({ n, s, e, ss, se, d }) => ({
      specifier: n,
      start: d >= 0 ? s + 1 : s,
      end: d >= 0 ? e - 1 : e,
      statement: code.slice(ss, se),
      isDynamic: d >= 0,
    }))
}

/**
 * Returns the modules that `entry` imports, directly or not, with itself. Paths are absolute. With
 * `onlyStatic`, what `import()` loads later is left out.
 */
export function closureOf(entry, { onlyStatic = false } = {}) {
  const seen = new Set()
  const open = [entry]
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (seen.has(file)) continue
    seen.add(file)
    for (const { specifier, isDynamic } of importsOf(readFileSync(file, 'utf8'))) {
      if (specifier.startsWith('.') && !(onlyStatic && isDynamic)) {
        open.push(join(dirname(file), specifier))
      }
    }
  }
  return seen
}

/** Returns the names of the packages that a module loads. */
export function packagesOf(code) {
  const others = [...code.matchAll(OTHER_LOADS)].map(([, one, other]) => one ?? other)
  return [...importsOf(code).map(({ specifier }) => specifier), ...others]
    .filter(name => !name.startsWith('.') && !isBuiltin(name))
    .map(nameOf)
}

/** Returns the name of the package in a specifier such as `@hono/node-server/utils/response`. */
export const nameOf = specifier =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

/** Replaces specifiers of a module: `replace` returns the new one, or null to keep it. */
export function replaceSpecifiers(code, replace) {
  let result = code
  for (const found of importsOf(code).toReversed()) {
    const specifier = replace(found)
    if (specifier === null) continue
    result = result.slice(0, found.start) + specifier + result.slice(found.end)
  }
  return result
}
