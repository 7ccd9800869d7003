/** Names and values, one a line, the values below one another; what is null is left out. */
export function keyValues(all: readonly (readonly [name: string, value: string | null])[]): string {
  const given = all.filter(([, value]) => value !== null)
  const width = Math.max(...given.map(([name]) => name.length))
  return given.map(([name, value]) => `  ${name.padEnd(width)}  ${value}\n`).join('')
}
