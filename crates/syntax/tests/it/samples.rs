//! Valid sample texts, one for each language.

/// A file name and its text.
pub(crate) const SAMPLES: &[(&str, &str)] = &[
    ("run.sh", "# Doc.\nbuild() {\n  echo \"${X}\"\n}\nfunction test_all {\n  build\n}\n"),
    (
        "list.c",
        "#define MAX 3\n#define SQUARE(x) ((x) * (x))\n/* Doc. */\nstruct list {\n  int len;\n  int (*free)(void);\n};\n\
         typedef struct { int a; } point_t;\nenum color { RED, GREEN };\nint total = 0;\nextern int put(int c);\n\
         /* Doc. */\nstatic int\nlist_len(struct list *l)\n{\n  int n = 0;\n  return n;\n}\nchar *name(void) { return 0; }\n",
    ),
    (
        "Store.cs",
        "namespace Shop\n{\n  /// <summary>Doc.</summary>\n  public class Store<T> : Base\n  {\n    int count, size;\n    \
         public int Size { get; set; }\n    public Store() {}\n    public void Add(T item)\n    {\n      void Local() {}\n    }\n  }\n  \
         enum Color { Red }\n  interface IStore { void Add(); }\n}\n",
    ),
    (
        "store.cpp",
        "namespace shop {\n// Doc.\ntemplate <class T>\nclass Store : public Base {\n public:\n  Store();\n  ~Store();\n  \
         int size() const { return 1; }\n  int count;\n};\n}\nint Store<int>::size() const {\n  return 0;\n}\nusing Id = int;\n",
    ),
    (
        "store.go",
        "package shop\n\n// Doc.\ntype Store[T any] struct {\n\titems, more []T\n}\n\ntype (\n\tReader interface {\n\t\tRead() int\n\t}\n)\n\n\
         const Max = 3\n\nvar first, second = 1, 2\n\n// Doc.\nfunc (s *Store[T]) Add(item T) {\n\tlocal := 1\n}\n\nfunc New() *int { return nil }\n",
    ),
    (
        "Store.java",
        "package shop;\n/** Doc. */\n@Deprecated\npublic class Store<T> {\n  private int count, size;\n  Store() {}\n  \
         public void add(T item) {\n    int local = 1;\n  }\n  enum Color { RED }\n  interface Reader { int read(); }\n  record Point(int x) {}\n}\n",
    ),
    (
        "store.js",
        "/** Doc. */\nexport class Store {\n  count = 0;\n  add(item) {\n    const local = 1;\n  }\n  get = () => 1;\n}\n\
         const MAX = 3;\nexport const make = async () => {\n  return 1;\n};\nexports.old = function () {};\nStore.prototype.size = function () {};\n\
         function* items() {}\n",
    ),
    (
        "Store.kt",
        "package shop\n\n/** Doc. */\nclass Store<T>(val size: Int) : Base() {\n  companion object {\n    const val MAX = 3\n  }\n  \
         fun add(item: T): Int = 1\n  val count: Int\n    get() = 3\n}\nobject Single\ninterface Reader {\n  fun read()\n}\n\
         fun String.shout() {}\nenum class Color {\n  RED\n}\ntypealias Id = Int\n",
    ),
    (
        "Store.php",
        "<?php\nnamespace Shop;\n/** Doc. */\nclass Store extends Base {\n  const MAX = 3;\n  private $items;\n  \
         public function add($item) {\n    $local = 1;\n  }\n}\ninterface Reader { public function read(); }\nfunction make() {}\n",
    ),
    (
        "store.py",
        "MAX = 3\n\n# Doc.\n@decorator\nclass Store(Base):\n    count: int = 0\n\n    @property\n    def size(self):\n        local = 1\n        \
         return local\n\nasync def make():\n    def inner():\n        pass\n",
    ),
    (
        "store.rb",
        "module Shop\n  # Doc.\n  class Store < Base\n    MAX = 3\n    def add(item)\n      local = 1\n    end\n    def self.make\n    end\n  end\nend\n",
    ),
    (
        "store.rs",
        "//! Module.\n\n/// Doc.\n#[derive(Debug)]\npub struct Store<T> {\n    items: Vec<T>,\n}\n\nimpl<T> Store<T> {\n    /// Doc.\n    \
         pub fn add(&mut self, item: T) {\n        const LOCAL: u8 = 1;\n    }\n}\n\nimpl<T> fmt::Debug for Store<T> {\n    fn fmt(&self) {}\n}\n\n\
         trait Reader {\n    fn read(&self);\n}\n\nenum Color {\n    Red,\n}\n\nconst MAX: u8 = 3;\nmod inner {\n    fn hidden() {}\n}\nmacro_rules! m {\n    () => {};\n}\n",
    ),
    (
        "Store.swift",
        "/// Doc.\nstruct Store {\n  var count: Int = 1\n  init() {}\n  func add(item: Int) -> Int {\n    let local = 1\n    return local\n  }\n}\n\
         extension Store: Reader {\n  func read() {}\n}\nprotocol Reader {\n  func read()\n}\nenum Color { case red, green }\nlet max = 3\n",
    ),
    (
        "View.tsx",
        "export function View(props: { name: string }) {\n  return <b>{props.name}</b>;\n}\n\nexport const List = () => <ul />;\n",
    ),
    (
        "store.ts",
        "/** Doc. */\nexport abstract class Store<T> {\n  private count = 0;\n  constructor() {}\n  abstract read(): T;\n  add(item: T): void {}\n}\n\
         export interface Reader {\n  read(): number;\n  size: number;\n}\ntype Id = number;\nenum Color { Red, Green = 2 }\n\
         namespace inner {\n  export const k = 1;\n}\nexport function make(): void;\nexport function make(a?: number): void {}\n",
    ),
];
