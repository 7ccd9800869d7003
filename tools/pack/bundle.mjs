// Bundles made with rolldown: modules, declarations, and packages that are mostly unused.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join, sep } from 'node:path'
import { rolldown } from 'rolldown'
import { dts } from 'rolldown-plugin-dts'

/** Writes the declarations that `entry` exports, with what they refer to, as one file. */
export async function bundleTypes(entry, file) {
  const bundle = await rolldown({
    input: entry,
    external: [/^node:/],
    // The oxc generator needs no TypeScript API. It is not used: the input is declarations already.
    plugins: [dts({ dtsInput: true, emitDtsOnly: true, tsconfig: false, generator: 'oxc' })],
  })
  const { output } = await bundle.generate({ format: 'es' })
  const [{ code }] = output
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, code)
}

/** Folders of `src/` with a file of their own in bundles: short commands need no others. */
const PARTS = ['platform', 'config', 'client']

/**
 * Writes modules with what they import; `entries` are the modules by the name of their file. Modules
 * of which `isStart` is true, which every start of `ev` loads, have a file of their own.
 */
export async function bundleModules(entries, folder, isStart) {
  const bundle = await rolldown({
    input: entries,
    platform: 'neutral',
    external: id => !id.startsWith('.') && !isAbsolute(id),
  })
  const parts = PARTS.map(name => ({ name, test: file => file.split(sep).at(-2) === name }))
  const groups = [{ name: 'start', test: isStart }, ...parts, { name: 'engine' }]
  await bundle.write({
    dir: folder,
    format: 'es',
    sourcemap: true,
    // The declarations have those of public functions.
    comments: { jsdoc: false },
    chunkFileNames: '[name].js',
    codeSplitting: {
      groups: groups.map((group, index) => ({ ...group, priority: groups.length - index })),
    },
  })
}

/**
 * Writes packages to `folder`, with what they import; `names` are the imported names by specifier.
 * Packages in `external` are not included. Returns the files by specifier.
 */
export async function bundlePackages(root, folder, names, external) {
  // Packages are resolved from the place of the entry files.
  const entries = join(root, `node_modules/.cache/ev-pack-${process.pid}`)
  mkdirSync(entries, { recursive: true })
  const input = {}
  for (const [name, imported] of names) {
    const fileName = fileNameOf(name)
    input[fileName] = join(entries, `${fileName}.mjs`)
    writeFileSync(input[fileName], `export { ${[...imported].join(', ')} } from '${name}'\n`)
  }
  const bundle = await rolldown({
    input,
    platform: 'node',
    external: id => external.some(name => id === name || id.startsWith(`${name}/`)),
    plugins: [builtinModules],
  })
  const { output } = await bundle.write({
    dir: folder,
    format: 'es',
    comments: false,
    chunkFileNames: 'shared-[name].js',
  })
  rmSync(entries, { recursive: true })
  const licenses = licensesOf(output.flatMap(({ moduleIds = [] }) => moduleIds))
  writeFileSync(join(folder, 'LICENSES.txt'), licenses)
  return new Map([...names.keys()].map(name => [name, `${fileNameOf(name)}.js`]))
}

/**
 * Replaces imports of Node's modules by calls of `process.getBuiltinModule`: an import reads all
 * properties of the module, and so loads what Node would load on first use, such as the promises of
 * node:fs, and opens stdin, stdout and stderr.
 */
export const builtinModules = {
  name: 'builtin-modules',
  renderChunk: code => ({
    code: code.replaceAll(BUILTIN_IMPORT, (_, name, names, specifier) => {
      const module = `globalThis.process.getBuiltinModule("${specifier}")`
      // Commander needs it only for subcommands that are programs; loading it takes 4 ms.
      return specifier === CHILD_PROCESS && name !== undefined
        ? `const ${name} = { get spawn() { return ${module}.spawn; } };`
        : `const ${name ?? `{${names.replaceAll(' as ', ': ')}}`} = ${module};`
    }),
    map: null,
  }),
}

const CHILD_PROCESS = 'node:child_process'
/** Matches an import statement in the output of rolldown, which writes each on its own line. */
const BUILTIN_IMPORT = /^import (?:(?:\* as )?([\w$]+)|\{([^}]*)\}) from "(node:[\w/]+)";$/gm

/** What stands between the licenses, each of which begins with the name and the version. */
export const LICENSE_SEPARATOR = `\n${'-'.repeat(80)}\n\n`

const fileNameOf = specifier => specifier.replace('@', '').replaceAll('/', '-')

/** Returns the licenses of the packages that the modules belong to. */
function licensesOf(modules) {
  const folders = new Set(modules.map(packageFolder).filter(folder => folder !== null))
  return [...folders]
    .sort()
    .map(folder => {
      const { name, version, license } = JSON.parse(
        readFileSync(join(folder, 'package.json'), 'utf8'),
      )
      const file = readdirSync(folder).find(one => /^licen[cs]e/i.test(one))
      const text = file === undefined ? `License: ${license}` : readFileSync(join(folder, file))
      return `${name} ${version}\n\n${String(text).trim()}\n`
    })
    .join(LICENSE_SEPARATOR)
}

/** Returns the folder of the package that contains a file; null for a file of none. */
function packageFolder(file) {
  const parts = file.split(sep)
  const at = parts.lastIndexOf('node_modules') + 1
  if (at === 0) return null
  const folder = parts.slice(0, at + (parts[at].startsWith('@') ? 2 : 1)).join(sep)
  return existsSync(join(folder, 'package.json')) ? folder : null
}
