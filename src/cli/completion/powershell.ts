import type { Branch, Takes } from './tree.ts'

/** Returns the completion script for PowerShell 5.1 and later. */
export function powershellScript(branches: readonly Branch[]): string {
  return `# ev completion for PowerShell. Add this line to $PROFILE:  ev completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName ev -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $tree = @{
${branches.map(branchEntry).join('\n')}
  }
  $words = @($commandAst.CommandElements |
    Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
    ForEach-Object { $_.Extent.Text })
  $path = 'ev'
  foreach ($word in ($words | Select-Object -Skip 1)) {
    if ($tree.ContainsKey("$path $word")) { $path = "$path $word" }
  }
  $branch = $tree[$path]
  $last = if ($words.Count -gt 0) { $words[-1] } else { '' }
  if ($branch.Values.ContainsKey($last)) { $found = $branch.Values[$last] }
  elseif ($wordToComplete -like '-*') { $found = $branch.Flags }
  else { $found = $branch.Words }
  $found | Where-Object { $_ -like "$wordToComplete*" } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
  }
}
`
}

/**
 * A branch: its options, its commands or the words of its argument, and the words of each option
 * that takes a value. Without a result, PowerShell completes file names.
 */
function branchEntry({ path, commands, flags, argument }: Branch): string {
  const words = commands.length > 0 ? commands.map(({ name }) => name) : wordsOf(argument)
  const values = flags
    .filter(({ takes }) => takes.kind !== 'nothing')
    .flatMap(({ names, takes }) => names.map(name => `${quoted(name)} = ${list(wordsOf(takes))}`))
  const names = flags.flatMap(flag => flag.names)
  return `    ${quoted(path)} = @{ Flags = ${list(names)}; Words = ${list(words)}; Values = @{ ${values.join('; ')} } }`
}

const wordsOf = (takes: Takes): readonly string[] => (takes.kind === 'words' ? takes.words : [])

const list = (words: readonly string[]) => `@(${words.map(quoted).join(', ')})`

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`
