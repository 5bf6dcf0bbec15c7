// Fetches the public corpora that shield is tuned and measured with.
//
//   node scripts/shield-corpora.ts [--only name]
//
// Every corpus is pinned to a commit in tests/shield/public.json. Only the pinned files are downloaded, never a
// whole repository. What is fetched stays in a scratch folder: nothing of it is committed.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/** A commit with its folders, without file contents: a few megabytes at most. */
const FETCH_LIMIT_MILLISECONDS = 5 * 60 * 1000
/** Commands that read only what was already fetched. */
const READ_LIMIT_MILLISECONDS = 60 * 1000
/** The largest pinned file has 4 MB; one that has grown past this is not what was pinned. */
const LARGEST_FILE_BYTES = 16 * 1024 * 1024
/** All files of the largest corpus together have 10 MB. */
const LARGEST_CORPUS_BYTES = 64 * 1024 * 1024
/** A listing of 100,000 files has about 10 MB. */
const LARGEST_LISTING_BYTES = 64 * 1024 * 1024
/** A pattern of paths that matches more than this is a mistake. */
const MOST_FILES_IN_A_CORPUS = 1000
/** Enough for a rate with a margin below one percent, and a run stays within seconds. */
const MOST_EXAMPLES_IN_A_CORPUS = 3000
/** Longer than the arguments that agents send; a longer text is left out, not cut. */
const LARGEST_TEXT_BYTES = 20 * 1024

type Use = 'tune' | 'report'

/** One entry of public.json. */
interface Pin {
  name: string
  repository: string
  commit: string
  /** Paths in the repository; `*` stands for anything but a slash, `**` for anything; with `!` in front, what is left out. */
  paths: string[]
  category: string
  use: Use
  /** `lines`, `file`, `markdown-code`, `csv:<column>`, `json:<pointer>`, `jsonl:<pointer>`, `yaml:<key>|<key>` or `matches:<regular expression>`. */
  format: string
  /** For `lines`: lines that start with `#` are skipped. */
  comments?: boolean
  /** Which rows or items: a column (csv), or a pointer in the item (json, jsonl), and its allowed values. */
  filter?: Record<string, string | string[]>
  /** Cuts each file before every line that matches, and keeps blocks that match `with` and do not match `without`. */
  blocks?: { cut: string; with?: string; without?: string }
  /** `url`: the text is URL-encoded. `query`: it is an URL or a query string; its only value, or all of it, decoded. `escapes`: a line end is `\n`, a quote `\"`. */
  decode?: 'url' | 'query' | 'escapes'
  /** What is taken out of each text, such as the marks of a placeholder. */
  erase?: string
  /** Only texts that match. */
  keep?: string
  /** No texts that match. */
  drop?: string
  /** Kinds of texts that are counted by themselves, in this order: a text is of the first kind whose pattern it matches. */
  kinds?: Record<string, string>
  /** Categories whose signs an ordinary text can contain rightly: a mail has addresses in it. */
  contains?: string[]
  license: string
  note: string
}

/** The result for one corpus. */
interface Count {
  name: string
  category: string
  use: Use
  found: number
  distinct: number
  tooLong: number
  /** Left out of a corpus for the report because a corpus for tuning has the same text. */
  shared: number
  written: number
}

interface Limits {
  milliseconds: number
  bytes: number
}

/** Adds the name of the corpus to every error. */
class CorpusError extends Error {
  constructor(pin: Pin, problem: string) {
    super(`corpus ${pin.name} (${pin.repository} at ${pin.commit}): ${problem}`)
  }
}

function git(pin: Pin, repository: string, argumentsOfGit: string[], limits: Limits, input = ''): Buffer {
  const result = spawnSync('git', [`--git-dir=${repository}`, ...argumentsOfGit], {
    timeout: limits.milliseconds,
    maxBuffer: limits.bytes,
    env: { ...process.env, GIT_TERMINAL_PROMPT: '0' },
    input,
  })
  if (result.error) throw new CorpusError(pin, `git ${argumentsOfGit.join(' ').slice(0, 60)}: ${result.error.message}`)
  if (result.status !== 0) {
    throw new CorpusError(pin, `git ${argumentsOfGit.join(' ').slice(0, 60)} ended with ${result.status ?? result.signal}: ${result.stderr.toString().trim().slice(0, 500)}`)
  }
  return result.stdout
}

/** The commit and its folders. File contents follow, for the pinned files only. */
function fetchCommit(pin: Pin, folder: string): string {
  const repository = join(folder, `${pin.repository.replace('/', '+')}.git`)
  const limits = { milliseconds: FETCH_LIMIT_MILLISECONDS, bytes: LARGEST_LISTING_BYTES }
  if (!existsSync(repository)) {
    mkdirSync(repository, { recursive: true })
    git(pin, repository, ['init', '--quiet', '--bare'], limits)
  }
  const here = spawnSync('git', [`--git-dir=${repository}`, 'rev-parse', '--quiet', '--verify', `refs/pins/${pin.commit}`], {
    timeout: READ_LIMIT_MILLISECONDS,
  })
  if (here.status !== 0) {
    const options = ['--quiet', '--no-tags', '--depth', '1', '--filter=blob:none']
    git(pin, repository, ['fetch', ...options, address(pin), `${pin.commit}:refs/pins/${pin.commit}`], limits)
  }
  return repository
}

function address(pin: Pin): string {
  return `https://github.com/${pin.repository}`
}

interface PinnedFile {
  path: string
  blob: string
}

/** The pinned files, in the order of their paths. */
function listFiles(pin: Pin, repository: string): PinnedFile[] {
  const limits = { milliseconds: READ_LIMIT_MILLISECONDS, bytes: LARGEST_LISTING_BYTES }
  const listing = git(pin, repository, ['ls-tree', '-r', '-z', '--full-tree', pin.commit], limits).toString('utf8')
  const wanted = pin.paths.filter((path) => !path.startsWith('!'))
  const patterns = wanted.map(pathPattern)
  const unwanted = pin.paths.filter((path) => path.startsWith('!')).map((path) => pathPattern(path.slice(1)))
  const files: PinnedFile[] = []
  const matched = new Set<RegExp>()
  for (const entry of listing.split('\0')) {
    const [, type, blob, path] = /^\d+ (\w+) ([0-9a-f]+)\t([\s\S]*)$/.exec(entry) ?? []
    if (type !== 'blob' || blob === undefined || path === undefined) continue
    const pattern = patterns.find((candidate) => candidate.test(path))
    if (pattern === undefined || unwanted.some((candidate) => candidate.test(path))) continue
    matched.add(pattern)
    files.push({ path, blob })
  }
  const missing = wanted.filter((_, index) => !matched.has(patterns[index] as RegExp))
  if (missing.length > 0) throw new CorpusError(pin, `no file matches ${missing.join(', ')}`)
  if (files.length > MOST_FILES_IN_A_CORPUS) throw new CorpusError(pin, `${files.length} files match; the most is ${MOST_FILES_IN_A_CORPUS}`)
  return files
}

function pathPattern(path: string): RegExp {
  const pieces = path.split(/(\*\*|\*)/).map((piece) => {
    if (piece === '**') return '.*'
    if (piece === '*') return '[^/]*'
    return piece.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
  })
  return new RegExp(`^${pieces.join('')}$`)
}

/** All contents in one request; without it git would ask for each file by itself. */
function fetchContents(pin: Pin, repository: string, files: PinnedFile[]): void {
  const blobs = [...new Set(files.map((file) => file.blob))]
  const marker = join(repository, `contents-of-${pin.name}`)
  if (existsSync(marker) && readFileSync(marker, 'utf8') === blobs.join('\n')) return
  const options = ['--quiet', '--no-tags', '--no-write-fetch-head', '--filter=blob:none']
  const limits = { milliseconds: FETCH_LIMIT_MILLISECONDS, bytes: LARGEST_LISTING_BYTES }
  // Without this git tells the server that it has the commit, and the server then sends nothing.
  const asking = ['-c', 'fetch.negotiationAlgorithm=noop']
  git(pin, repository, [...asking, 'fetch', ...options, address(pin), ...blobs], limits)
  writeFileSync(marker, blobs.join('\n'))
}

/** The contents of all pinned files, from one process: a corpus can have a thousand files. */
function readContents(pin: Pin, repository: string, files: PinnedFile[]): string[] {
  const limits = { milliseconds: READ_LIMIT_MILLISECONDS, bytes: LARGEST_CORPUS_BYTES }
  const answer = git(pin, repository, ['cat-file', '--batch'], limits, files.map((file) => `${file.blob}\n`).join(''))
  let position = 0
  return files.map((file) => {
    const end = answer.indexOf('\n', position)
    const [, size] = /^[0-9a-f]+ blob (\d+)$/.exec(answer.toString('latin1', position, end)) ?? []
    if (size === undefined) throw new CorpusError(pin, `${file.path} was not fetched`)
    if (Number(size) > LARGEST_FILE_BYTES) throw new CorpusError(pin, `${file.path} has ${size} bytes; the most is ${LARGEST_FILE_BYTES}`)
    position = end + 1 + Number(size) + 1
    return answer.toString('utf8', end + 1, position - 1).replace(/^\uFEFF/, '')
  })
}

/** The parts of a file that the pin asks for. */
function partsOf(pin: Pin, content: string): string {
  const blocks = pin.blocks
  if (blocks === undefined) return content
  const wanted = blocks.with === undefined ? undefined : new RegExp(blocks.with, 'm')
  const unwanted = blocks.without === undefined ? undefined : new RegExp(blocks.without, 'm')
  return content
    .split(new RegExp(`(?=${blocks.cut})`, 'm'))
    .filter((block) => (wanted?.test(block) ?? true) && !(unwanted?.test(block) ?? false))
    .join('')
}

function textsOf(pin: Pin, content: string): string[] {
  const [format, rest] = splitFormat(pin.format)
  switch (format) {
    case 'file':
      return [content]
    case 'lines':
      return linesOf(content).filter((line) => !(pin.comments === true && line.startsWith('#')))
    case 'markdown-code':
      return fencedLines(content)
    case 'csv':
      return columnOf(pin, content, rest)
    case 'json':
      return itemsOf(pin, JSON.parse(content), rest)
    case 'jsonl':
      return linesOf(content).flatMap((line) => itemsOf(pin, JSON.parse(line), rest))
    case 'yaml':
      return yamlScalars(content, rest)
    case 'matches':
      return matchesOf(content, rest)
    default:
      throw new CorpusError(pin, `there is no format ${pin.format}`)
  }
}

function splitFormat(format: string): [string, string] {
  const colon = format.indexOf(':')
  return colon < 0 ? [format, ''] : [format.slice(0, colon), format.slice(colon + 1)]
}

function linesOf(content: string): string[] {
  return content.split(/\r\n|\n|\r/).filter((line) => line.trim() !== '')
}

function fencedLines(content: string): string[] {
  const texts: string[] = []
  let inside = false
  for (const line of linesOf(content)) {
    if (/^\s*(```|~~~)/.test(line)) inside = !inside
    else if (inside) texts.push(line.trim())
  }
  return texts
}

/** The first group that took part in each match. */
function matchesOf(content: string, pattern: string): string[] {
  return [...content.matchAll(new RegExp(pattern, 'gm'))].map((match) => match.slice(1).find((group) => group !== undefined) ?? match[0])
}

function columnOf(pin: Pin, content: string, column: string): string[] {
  const [header = [], ...rows] = csvRows(content)
  const indexOf = (name: string): number => {
    // A file without a header row is addressed by the column's number, counted from zero.
    const index = /^\d+$/.test(name) ? Number(name) : header.indexOf(name)
    if (index < 0) throw new CorpusError(pin, `there is no column ${name} in ${header.join(', ')}`)
    return index
  }
  const wanted = indexOf(column)
  const conditions = Object.entries(pin.filter ?? {}).map(([name, allowed]) => ({ index: indexOf(name), allowed: [allowed].flat() }))
  const all = /^\d+$/.test(column) ? [header, ...rows] : rows
  return all
    .filter((row) => conditions.every(({ index, allowed }) => allowed.includes(row[index] ?? '')))
    .map((row) => row[wanted] ?? '')
}

/** Comma-separated values: a field in quotes can contain commas, line ends and doubled quotes. */
function csvRows(content: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let field = ''
  let quoted = false
  for (let index = 0; index < content.length; index += 1) {
    const character = content[index] as string
    if (quoted) {
      if (character !== '"') field += character
      else if (content[index + 1] === '"') {
        field += '"'
        index += 1
      } else quoted = false
    } else if (character === '"' && field === '') quoted = true
    else if (character === ',' || character === '\n') {
      row.push(field)
      field = ''
      if (character === '\n') {
        rows.push(row)
        row = []
      }
    } else if (character !== '\r') field += character
  }
  if (field !== '' || row.length > 0) rows.push([...row, field])
  return rows.filter((candidate) => candidate.some((value) => value !== ''))
}

/** A pointer's path up to its last `*` names the items; filters are pointers inside an item. */
function itemsOf(pin: Pin, document: unknown, pointer: string): string[] {
  const steps = pointer.split('/').slice(1)
  const conditions = Object.entries(pin.filter ?? {})
  const firstStar = steps.indexOf('*')
  const items = at(document, steps.slice(0, firstStar + 1))
  return items
    .filter((item) => conditions.every(([path, allowed]) => at(item, path.split('/').slice(1)).some((value) => [allowed].flat().includes(String(value)))))
    .flatMap((item) => at(item, steps.slice(firstStar + 1)))
    .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
}

function at(value: unknown, steps: string[]): unknown[] {
  const [step, ...rest] = steps
  if (step === undefined) return value === undefined || value === null ? [] : [value]
  if (typeof value !== 'object' || value === null) return []
  if (step === '*') return Object.values(value).flatMap((member) => at(member, rest))
  const key = step.replace(/~1/g, '/').replace(/~0/g, '~')
  return Object.hasOwn(value, key) ? at((value as Record<string, unknown>)[key], rest) : []
}

/** The scalars below one key, wherever it is: a value, or a list of values. Enough of YAML for the pinned files. */
function yamlScalars(content: string, key: string): string[] {
  const lines = content.split(/\r?\n/)
  const start = new RegExp(`^(\\s*(?:- +)*)(?:${key}):(?: +(.*))?$`)
  const texts: string[] = []
  for (let index = 0; index < lines.length; index += 1) {
    const [, indent = '', value = ''] = start.exec(lines[index] as string) ?? [undefined, undefined, undefined]
    if (!start.test(lines[index] as string)) continue
    if (value.trim() !== '' && !value.startsWith('#')) {
      texts.push(yamlScalar(lines, index, value, indent.length))
      continue
    }
    for (let item = index + 1; item < lines.length; item += 1) {
      const line = lines[item] as string
      const [, dash = '', text = ''] = /^(\s*)- +(.*)$/.exec(line) ?? []
      if (/^\s*- /.test(line) && dash.length >= indent.length) texts.push(yamlScalar(lines, item, text, dash.length))
      else if (line.trim() !== '' && (/^\s*/.exec(line)?.[0].length ?? 0) <= indent.length) break
    }
  }
  return texts
}

function yamlScalar(lines: string[], index: number, first: string, indent: number): string {
  const below: string[] = []
  for (const line of lines.slice(index + 1)) {
    if (line.trim() !== '' && (/^\s*/.exec(line)?.[0].length ?? 0) <= indent) break
    below.push(line)
  }
  if (/^[|>][+-]?\d?\s*$/.test(first)) return blockScalar(below, first.startsWith('>'))
  const quote = first[0]
  if (quote !== '"' && quote !== "'") return first.replace(/\s+#.*$/, '').trim()
  const whole = [first, ...below.map((line) => line.trim())].join(' ')
  const closed = (quote === '"' ? /^"((?:[^"\\]|\\.)*)"/ : /^'((?:[^']|'')*)'/).exec(whole)?.[1]
  if (closed === undefined) return first
  return quote === '"' ? unescapeDoubleQuoted(closed) : closed.replaceAll("''", "'")
}

function blockScalar(below: string[], folded: boolean): string {
  const margin = /^\s*/.exec(below.find((line) => line.trim() !== '') ?? '')?.[0].length ?? 0
  return below
    .map((line) => line.slice(margin))
    .join(folded ? ' ' : '\n')
    .trim()
}

const ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t', '0': '\0' }

function unescapeDoubleQuoted(text: string): string {
  return text.replace(/\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([\s\S]))/g, (_, short, long, character) => {
    const code = (short ?? long) as string | undefined
    return code === undefined ? (ESCAPES[character as string] ?? (character as string)) : String.fromCharCode(Number.parseInt(code, 16))
  })
}

function decoded(pin: Pin, text: string): string {
  if (pin.decode === 'url') return decodeUrl(text)
  if (pin.decode === 'escapes') return text.replace(/\\([nrt"])/g, (_, character: string) => ESCAPES[character] ?? character)
  if (pin.decode !== 'query') return text
  const query = text.includes('?') && text.startsWith('/') ? text.slice(text.indexOf('?') + 1) : text
  // A text without a name in front is not a query string, so a plus sign in it is a plus sign.
  if (query === text && !text.startsWith('/') && !/^[\w.[\]%-]{1,64}=/.test(text)) return decodeUrl(text.replaceAll('+', '%2B'))
  const single = /^[\w.[\]%-]{1,64}=([^&]*)$/.exec(query)?.[1]
  return decodeUrl(single ?? query)
}

/** Decodes a form's value. Incorrect escapes stay as they are, and bytes that are not UTF-8 are replaced. */
function decodeUrl(text: string): string {
  return text.replaceAll('+', ' ').replace(/(?:%[0-9a-fA-F]{2})+/g, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'))
}

/** `most` of the texts, at even distances from the first to the last. */
function evenly(texts: string[], most: number): string[] {
  if (texts.length <= most) return texts
  return Array.from({ length: most }, (_, index) => texts[Math.floor((index * texts.length) / most)] as string)
}

/** Texts that differ only in case and white space are the same example. */
function identity(text: string): string {
  return text.toLowerCase().replace(/\s+/g, ' ')
}

function textsOfCorpus(pin: Pin, repositories: string): string[] {
  const repository = fetchCommit(pin, repositories)
  const files = listFiles(pin, repository)
  fetchContents(pin, repository, files)
  const erase = pin.erase === undefined ? undefined : new RegExp(pin.erase, 'g')
  const keep = pin.keep === undefined ? undefined : new RegExp(pin.keep)
  const drop = pin.drop === undefined ? undefined : new RegExp(pin.drop)
  const found: string[] = []
  for (const [index, content] of readContents(pin, repository, files).entries()) {
    const texts = inFile(pin, files[index] as PinnedFile, () => textsOf(pin, partsOf(pin, content)))
    const finished = texts.map((text) => (erase === undefined ? decoded(pin, text) : decoded(pin, text).replace(erase, '')).trim())
    found.push(...finished.filter((text) => text !== '' && (keep?.test(text) ?? true) && !(drop?.test(text) ?? false)))
  }
  return found
}

/** `tuned` has what the corpora for tuning contain: the report must not measure that again. */
function extract(pin: Pin, repositories: string, tuned: Map<string, Set<string>>): { texts: string[]; count: Count } {
  const found = textsOfCorpus(pin, repositories)
  const distinct = [...new Map(found.map((text) => [identity(text), text])).values()]
  const seen = tuned.get(pin.category) ?? new Set<string>()
  tuned.set(pin.category, seen)
  const own = pin.use === 'tune' ? distinct : distinct.filter((text) => !seen.has(identity(text)))
  if (pin.use === 'tune') for (const text of distinct) seen.add(identity(text))
  const short = own.filter((text) => Buffer.byteLength(text) <= LARGEST_TEXT_BYTES)
  if (short.length === 0) throw new CorpusError(pin, 'no example was found')
  const texts = evenly(short, MOST_EXAMPLES_IN_A_CORPUS)
  const { name, category, use } = pin
  const shared = distinct.length - own.length
  return { texts, count: { name, category, use, found: found.length, distinct: distinct.length, tooLong: own.length - short.length, shared, written: texts.length } }
}

function inFile<Result>(pin: Pin, file: PinnedFile, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (error instanceof CorpusError) throw error
    throw new CorpusError(pin, `${file.path}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** public.json is ours, but a typing error in it should be found before anything is fetched. */
function readPins(path: string): Pin[] {
  const pins = JSON.parse(readFileSync(path, 'utf8')) as (Omit<Pin, 'paths'> & { path?: string; paths?: string[] })[]
  const names = new Set<string>()
  return pins.map((entry) => {
    const { path: single, ...rest } = entry
    const pin: Pin = { ...rest, paths: entry.paths ?? (single === undefined ? [] : [single]) }
    if (!/^[a-z0-9-]+$/.test(pin.name) || names.has(pin.name)) throw new CorpusError(pin, 'a name is lower case, with hyphens, and used once')
    if (!/^[\w.-]+\/[\w.-]+$/.test(pin.repository)) throw new CorpusError(pin, 'a repository is <owner>/<name>')
    if (!/^[0-9a-f]{40}$/.test(pin.commit)) throw new CorpusError(pin, 'a commit has 40 hexadecimal digits')
    if (!/^[a-z_]+$/.test(pin.category)) throw new CorpusError(pin, 'a category has lower-case letters and underscores')
    if (pin.use !== 'tune' && pin.use !== 'report') throw new CorpusError(pin, 'the use is tune or report')
    if (pin.paths.length === 0) throw new CorpusError(pin, 'no path is given')
    names.add(pin.name)
    return pin
  })
}

function write(out: string, pin: Pin, texts: string[]): void {
  const path = join(out, pin.use, pin.category, `${pin.name}.ndjson`)
  mkdirSync(dirname(path), { recursive: true })
  const kinds = Object.entries(pin.kinds ?? {}).map(([kind, pattern]) => ({ kind, pattern: new RegExp(pattern) }))
  const kindOf = (text: string): string | undefined => kinds.find(({ pattern }) => pattern.test(text))?.kind
  writeFileSync(path, texts.map((text) => `${JSON.stringify({ text, kind: kindOf(text) })}\n`).join(''))
}

function main(): void {
  const root = join(dirname(fileURLToPath(import.meta.url)), '..')
  const scratch = join(root, 'target', 'shield-corpora')
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
    },
  })
  const out = join(scratch, 'extracted')
  const pins = readPins(join(root, 'tests', 'shield', 'public.json')).filter((pin) => values.only === undefined || pin.name === values.only)
  // Files of an earlier list of pins must not be measured with this one.
  if (values.only === undefined) for (const use of ['tune', 'report']) rmSync(join(out, use), { recursive: true, force: true })
  const counts: Count[] = []
  const failures: string[] = []
  const tuned = new Map<string, Set<string>>()
  for (const pin of [...pins.filter((candidate) => candidate.use === 'tune'), ...pins.filter((candidate) => candidate.use === 'report')]) {
    try {
      const { texts, count } = extract(pin, join(scratch, 'repositories'), tuned)
      write(out, pin, texts)
      counts.push(count)
      console.log(`${count.use} ${count.category} ${count.name}: ${count.written} of ${count.distinct}, ${count.shared} shared, ${count.tooLong} too long`)
    } catch (error) {
      failures.push(error instanceof Error ? error.message : String(error))
      console.error(failures.at(-1))
    }
  }
  mkdirSync(out, { recursive: true })
  if (values.only === undefined) writeFileSync(join(out, 'counts.json'), `${JSON.stringify(counts, null, 2)}\n`)
  if (failures.length > 0) process.exitCode = 1
}

main()
