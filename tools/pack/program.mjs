// Bundles the command line, so that a start loads a few files instead of a hundred and more.
import { readFileSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { rolldown } from 'rolldown'
import { builtinModules } from './bundle.mjs'
import { FOLDER as BUNDLED } from './dependencies.mjs'
import { closureOf, importsOf } from './modules.mjs'

/** The folder of the bundle in the build. `bin/ev.js` starts its `main.js`. */
const FOLDER = 'program'

/** Functions that rolldown adds, such as one for templates with `</script>`. */
const HELPERS = '@oxc-project/runtime/'

/**
 * Bundles the compiled modules of `dist` that `entries` import into `target`; `entries` are modules
 * by the name of their file in `target`, both without the ending. `toExternal` returns the specifier
 * of a module that stays outside of the bundle, and null for any other.
 */
export async function bundleProgram(dist, target, entries, toExternal = () => null) {
  const input = Object.entries(entries).map(([name, module]) => [name, join(dist, `${module}.js`)])
  const bundle = await rolldown({
    input: Object.fromEntries(input),
    platform: 'node',
    external: id => !id.startsWith('.') && !isAbsolute(id) && !id.startsWith(HELPERS),
    plugins: [compiledModules(dist, toExternal), builtinModules],
    preserveEntrySignatures: false,
    // A module that is also loaded statically is there at once; the source need not know.
    checks: { ineffectiveDynamicImport: false },
  })
  const { output } = await bundle.write({
    dir: target,
    format: 'es',
    sourcemap: true,
    comments: false,
    entryFileNames: '[name].js',
    chunkFileNames: `${FOLDER}/[name].js`,
    codeSplitting: groupsOf(dist),
  })
  for (const { fileName, imports = [] } of output) {
    // An entry waits at its top level for what it loads, which must not wait for the entry.
    const entry = imports.find(name => name.replace(/\.js$/, '') in entries)
    if (entry !== undefined) throw new Error(`${fileName} imports the entry ${entry}.`)
  }
}

/**
 * Modules that many commands load, by the name of the file that has them and what they import. The
 * first two are in every start; that of `ev --version` ends before the second.
 */
const GROUPS = {
  start: 'cli/main',
  commands: 'cli/program',
  settings: 'cli/settings',
  engine: 'compose/engine',
  database: 'cli/database',
}

/** Groups that every start loads. */
const FIRST = new Set(['start', 'commands'])

/**
 * Groups the modules that are always loaded together: a module is in the file of a group if whatever
 * loads the module loads the whole group. Any other module is in a file with those that the same
 * commands load.
 */
function groupsOf(dist) {
  const entry = join(dist, `${GROUPS.start}.js`)
  const closures = new Map(
    [...dynamicEntries(entry)].map(file => [file, closureOf(file, { onlyStatic: true })]),
  )
  const groups = Object.entries(GROUPS).map(([name, module]) => {
    const root = join(dist, `${module}.js`)
    return { name, root, modules: closureOf(root, { onlyStatic: true }) }
  })
  const groupOf = id => {
    // Modules of a group with a top-level await would wait for it, and it for them.
    if (id === entry) return null
    const loads = [...closures.values()].filter(modules => modules.has(id))
    const isAlone = ({ name, root }) => FIRST.has(name) || loads.every(one => one.has(root))
    return groups.find(group => group.modules.has(id) && isAlone(group))?.name ?? null
  }
  return {
    groups: [{ name: groupOf, debugName: 'loaded together' }],
    includeDependenciesRecursively: false,
  }
}

/** Returns the entry and all modules that `import()` loads. */
function dynamicEntries(entry) {
  const entries = new Set([entry])
  for (const file of closureOf(entry)) {
    for (const { specifier, isDynamic } of importsOf(readFileSync(file, 'utf8'))) {
      if (isDynamic && specifier.startsWith('.')) entries.add(join(dirname(file), specifier))
    }
  }
  return entries
}

/** Reads modules with the source maps of the compiler; URLs of files stay those of the module. */
const compiledModules = (dist, toExternal) => ({
  name: 'compiled-modules',
  resolveId(specifier, importer) {
    if (!specifier.startsWith('.') || importer === undefined) return null
    const file = join(dirname(importer), specifier)
    // All files of the bundle are one folder below the root of the build.
    const path = relative(dist, file).split(sep).join('/')
    const id = path.startsWith(`${BUNDLED}/`) ? `../${path}` : toExternal(file)
    return id === null ? null : { id, external: true }
  },
  load(id) {
    const code = readFileSync(id, 'utf8')
    const path = relative(dist, id).split(sep).join('/')
    const url = `new URL('../${path}', import.meta.url).href`
    return {
      code: code
        .replaceAll(/(?<!createRequire\()import\.meta\.url(?!\.slice)/g, url)
        .replaceAll('import.meta.dirname', `import.meta.dirname + '/../${dirname(path)}'`),
      map: readFileSync(`${id}.map`, 'utf8'),
    }
  },
})
