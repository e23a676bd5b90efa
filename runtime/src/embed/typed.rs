//! Signatures of tools and schemas of results, derived from Rust types.

use std::sync::Arc;

use ptc_lisp::json;
use ptc_lisp::signature::{Signature, to_property_names};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::tool::Run;
use super::{Args, Request, Tool, ToolDefinitionError, ToolFailure};

/// Tools with the feature `schemars`, whose signatures are derived from types.
impl Tool {
    /// Makes a tool whose arguments and result are Rust types. The function may block and compute, as that of [`Tool::new`].
    ///
    /// The signature follows from the types, as far as a signature can express them: see
    /// [`Signature::from_json_schemas_lossy`](ptc_lisp::signature::Signature::from_json_schemas_lossy). The doc comment of `In`
    /// becomes the description. Arguments that do not deserialize are an error, and the function is not called.
    ///
    /// ```
    /// use ptc_runtime::embed::{Engine, Request, Tool};
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    ///
    /// /// The exchange rate of a currency.
    /// #[derive(Deserialize, JsonSchema)]
    /// struct RateArgs {
    ///     currency: String,
    ///     /// Today if it is missing.
    ///     day: Option<String>,
    /// }
    ///
    /// #[derive(Serialize, JsonSchema)]
    /// struct Rate {
    ///     euros: f64,
    /// }
    ///
    /// let rate = Tool::typed("rate", |args: RateArgs| Ok(Rate { euros: if args.currency == "USD" { 0.92 } else { 1.0 } }))?;
    /// assert_eq!(
    ///     rate.to_string(),
    ///     "rate(currency :string, day :string?) -> {euros :float}\n  The exchange rate of a currency."
    /// );
    /// let engine = Engine::builder().tool(rate).build()?;
    /// assert_eq!(engine.run(Request::new("(:euros (tool/rate {:currency :USD}))")).preview(), Ok("0.92"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the name is not valid, or if `In` is not a struct with valid names of fields.
    pub fn typed<In: DeserializeOwned + JsonSchema, Out: Serialize + JsonSchema>(
        name: &str,
        run: impl Fn(In) -> Result<Out, ToolFailure> + Send + Sync + 'static,
    ) -> Result<Tool, ToolDefinitionError> {
        let types = Types::new::<In, Out>();
        let schema = Arc::clone(&types.input);
        types.tool(name, Run::blocking(move |args| run(parse(args, &schema)?)))
    }

    /// Like [`Tool::typed`], with an asynchronous function, as that of [`Tool::new_async`].
    ///
    /// # Errors
    ///
    /// Returns an error if the name is not valid, or if `In` is not a struct with valid names of fields.
    pub fn typed_async<In, Out, F>(name: &str, run: impl Fn(In) -> F + Send + Sync + 'static) -> Result<Tool, ToolDefinitionError>
    where
        In: DeserializeOwned + JsonSchema,
        Out: Serialize + JsonSchema,
        F: Future<Output = Result<Out, ToolFailure>> + Send + 'static,
    {
        let types = Types::new::<In, Out>();
        let schema = Arc::clone(&types.input);
        let run = move |args| {
            // Arguments are parsed before the task starts, so that the future need not hold them.
            let under_way = parse(args, &schema).map(&run);
            async move { under_way?.await }
        };
        types.tool(name, Run::asynchronous(run))
    }
}

impl Request {
    /// Sets the JSON Schema of a type for the result, see [`Request::output_schema`]. [`Answer::parse`](super::Answer::parse)
    /// then returns the result as this type.
    ///
    /// ```
    /// use ptc_runtime::embed::{Engine, Request};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema, Debug, PartialEq)]
    /// struct Total {
    ///     euros: f64,
    /// }
    ///
    /// let engine = Engine::builder().build()?;
    /// let answer = engine.run(Request::new("{:euros (+ 1.5 2)}").returns::<Total>());
    /// assert_eq!(answer.parse::<Total>().map_err(|failure| failure.message), Ok(Total { euros: 3.5 }));
    /// let failure = engine.run(Request::new("{:euros :many}").returns::<Total>()).parse::<Total>().unwrap_err();
    /// assert_eq!(failure.message, "return.euros: expected number, got string \"many\"");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn returns<T: JsonSchema>(self) -> Request {
        self.output_schema(SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().as_value().to_string())
    }
}

/// The schemas of a tool's types.
struct Types {
    input: Arc<ptc_lisp::Value>,
    output: ptc_lisp::Value,
    description: String,
}

impl Types {
    fn new<In: JsonSchema, Out: JsonSchema>() -> Types {
        let settings = SchemaSettings::draft2020_12();
        let input = settings.clone().for_deserialize().into_generator().into_root_schema_for::<In>();
        let output = settings.for_serialize().into_generator().into_root_schema_for::<Out>();
        let value = |schema: &schemars::Schema| json::decode(schema.as_value().to_string().as_bytes()).unwrap_or_default();
        let description = input.get("description").and_then(|text| text.as_str()).unwrap_or_default();
        // Lines of a doc comment are not paragraphs.
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        Types { input: Arc::new(value(&input)), output: value(&output), description }
    }

    fn tool(&self, name: &str, run: Run) -> Result<Tool, ToolDefinitionError> {
        let signature = Signature::from_json_schemas_lossy(&self.input, &self.output).map_err(|why| why.to_string());
        Ok(Tool::with(name, signature, run)?.describe(&self.description))
    }
}

fn parse<In: DeserializeOwned>(args: Args, schema: &ptc_lisp::Value) -> Result<In, ToolFailure> {
    Args { value: to_property_names(args.value, schema), bounds: args.bounds }.parse()
}
